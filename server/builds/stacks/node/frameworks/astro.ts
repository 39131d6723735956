import { configText, uses } from '../manifest.ts'
import type { NodeFramework } from './framework.ts'

/** Astro: files, unless the Node adapter is set up. */
export const astro: NodeFramework = {
  name: 'astro',
  detect: (app) => uses(app, 'astro'),
  plan(app) {
    const config = configText(app.tree, 'astro.config')
    // Inside of `vite: { … }` the option is ignored.
    const own = withoutObject(config, 'vite')
    const output =
      /outDir['"]?\s{0,9}:\s{0,9}['"]([A-Za-z0-9._/-]{1,80})['"]/.exec(own)?.[1]?.replace(/^\.\/|\/$/g, '') ??
      'dist'
    const build_env = { ASTRO_TELEMETRY_DISABLED: '1' }
    if (/@astrojs\/node/.test(config)) {
      // In middleware mode the app brings its own server, which its start script knows.
      const own_start = !/middleware/.test(config)
      return {
        kind: 'server',
        build: 'astro build',
        start: `node ./${output}/server/entry.mjs`,
        own_start,
        port: 4321,
        ready_path: '/',
        build_env,
      }
    }
    return { kind: 'static', build: 'astro build', output, fallback: 'pages', build_env }
  },
}

/** A text without the object that follows a key; braces are counted, whatever stands between them. */
function withoutObject(text: string, key: string): string {
  const start = new RegExp(`\\b${key}['"]?\\s{0,9}:\\s{0,9}\\{`).exec(text)
  if (start === null) return text
  let depth = 0
  for (let at = start.index; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    if (text[at] === '}' && --depth === 0) return text.slice(0, start.index) + text.slice(at + 1)
  }
  return text.slice(0, start.index)
}
