import { configText, majorOf, uses } from '../manifest.ts'
import type { NodeFramework } from './framework.ts'

/** Nuxt: Nitro's bundle since version 3, `nuxt start` in version 2, files when the build script generates. */
export const nuxt: NodeFramework = {
  name: 'nuxt',
  detect: (app) => uses(app, 'nuxt', 'nuxt3', 'nuxt-edge', 'nuxt-nightly'),
  plan(app) {
    const config = configText(app.tree, 'nuxt.config')
    const legacy =
      !uses(app, 'nuxt3', 'nuxt-nightly') && (uses(app, 'nuxt-edge') || (majorOf(app, 'nuxt') ?? 3) < 3)
    const build_script = app.manifest.scripts.get('build') ?? ''
    const generates = /\bgenerate\b/.test(build_script)
    if (legacy) {
      const is_static = generates || /target['"]?\s{0,9}:\s{0,9}['"]static/.test(config)
      if (is_static)
        return {
          kind: 'static',
          build: 'nuxt generate',
          output: 'dist',
          fallback: 'pages',
          node: '16',
          own_start: true,
        }
      return {
        kind: 'server',
        build: 'nuxt build',
        start: 'nuxt start',
        port: 3000,
        ready_path: '/',
        node: '16',
      }
    }
    const build_env = { NUXT_TELEMETRY_DISABLED: '1' }
    if (generates || /preset['"]?\s{0,9}:\s{0,9}['"]static/.test(config)) {
      return {
        kind: 'static',
        build: 'nuxt generate',
        output: '.output/public',
        fallback: 'pages',
        build_env,
      }
    }
    const ready_path = /baseURL/.test(config) ? undefined : '/'
    return {
      kind: 'server',
      build: 'nuxt build',
      start: 'node .output/server/index.mjs',
      own_start: true,
      port: 3000,
      ready_path,
      bundle: '.output',
      build_env,
    }
  },
}
