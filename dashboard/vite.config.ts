import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
/** Where `npm run dev` finds the API: a server, or the demo on fakes. */
const server = process.env.PORTREEVE_DEV_SERVER ?? 'http://127.0.0.1:9000'

export default defineConfig({
  root: here('.'),
  plugins: [vue(), tailwindcss()],
  resolve: { alias: { '@': here('src') } },
  // The server puts a nonce of its own into every page it sends.
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    manifest: true,
    // A data address would need a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': { target: server, ws: true }, '/readyz': server, '/healthz': server } },
})
