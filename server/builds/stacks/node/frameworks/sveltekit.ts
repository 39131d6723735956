import { configText, uses } from '../manifest.ts'
import type { NodeFramework } from './framework.ts'

/**
 * SvelteKit: its adapter decides. `adapter-auto` makes a Node server when it finds the mark of a container
 * builder.
 */
export const sveltekit: NodeFramework = {
  name: 'sveltekit',
  detect: (app) => uses(app, '@sveltejs/kit'),
  plan(app) {
    const config = configText(app.tree, 'svelte.config')
    if (/adapter-static/.test(config)) {
      const output = /pages['"]?\s{0,9}:\s{0,9}['"]([A-Za-z0-9._/-]{1,80})['"]/.exec(config)?.[1] ?? 'build'
      const page = /fallback['"]?\s{0,9}:\s{0,9}['"]([\w.-]{1,60}\.html)['"]/.exec(config)?.[1]
      const spa = page !== undefined && page !== '404.html'
      return {
        kind: 'static',
        build: 'vite build',
        output,
        fallback: spa ? 'spa' : 'pages',
        // Not a copy of it as the index: that would take the place of a front page that was rendered.
        ...(spa ? { spa_page: `/${page}` } : {}),
      }
    }
    const output = /\bout['"]?\s{0,9}:\s{0,9}['"]([A-Za-z0-9._/-]{1,80})['"]/.exec(config)?.[1] ?? 'build'
    const build_env = /adapter-node/.test(config) ? undefined : { GCP_BUILDPACKS: 'true' }
    const own_start = !/\bnode\b/.test(app.manifest.scripts.get('start') ?? '')
    return {
      kind: 'server',
      build: 'vite build',
      start: `node ${output}`,
      own_start,
      port: 3000,
      ready_path: '/',
      build_env,
    }
  },
}
