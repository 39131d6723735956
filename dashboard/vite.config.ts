import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
/** Where the pages find the API: the demo on fakes, or a server. */
const server = process.env.PORTREEVE_DEV_SERVER ?? 'http://127.0.0.1:9000'

/** The built server marks the page of a browser that has a session; here the API is asked each time. */
const session = {
  name: 'session-mark',
  apply: 'serve' as const,
  transformIndexHtml: (html: string) => html.replace('<html lang="en"', '<html lang="en" data-session'),
}

/** Puts the script that watches over the others before them, as a classic one: it must not wait for any. */
const boot = {
  name: 'boot',
  transformIndexHtml: {
    order: 'post' as const,
    handler(_html: string, { bundle }: { bundle?: Record<string, { type: string; name?: string }> }) {
      const built = Object.keys(bundle ?? {}).find((file) => bundle![file]!.name === 'boot')
      const attrs = built ? { src: `/${built}` } : { src: '/src/boot.ts', type: 'module' }
      return [{ tag: 'script', attrs, injectTo: 'head-prepend' as const }]
    },
  },
}

export default defineConfig({
  root: here('.'),
  plugins: [vue(), tailwindcss(), session, boot],
  resolve: { alias: { '@': here('src') } },
  // The server puts a nonce of its own into every page it sends.
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    manifest: true,
    rolldownOptions: { input: { index: here('index.html'), boot: here('src/boot.ts') } },
    // A data address would need a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': { target: server, ws: true }, '/readyz': server, '/healthz': server } },
})
