import { configText, uses, type NodeApp } from '../manifest.ts'
import type { FrameworkPlan, NodeFramework } from './framework.ts'

const SERVER: FrameworkPlan = {
  kind: 'server',
  start: 'node .output/server/index.mjs',
  port: 3000,
  ready_path: '/',
}

/** TanStack Start on Vite or vinxi. */
export const tanstackStart: NodeFramework = {
  name: 'tanstack-start',
  detect: (app) =>
    uses(app, '@tanstack/react-start', '@tanstack/solid-start', '@tanstack/vue-start', '@tanstack/start'),
  plan(app) {
    const build = usesVinxi(app) ? 'vinxi build' : 'vite build'
    if (
      /spa['"]?\s{0,9}:\s{0,9}\{[^}]{0,80}enabled['"]?\s{0,9}:\s{0,9}true/.test(
        configText(app.tree, 'vite.config'),
      )
    ) {
      return {
        kind: 'static',
        build,
        output: 'dist/client',
        fallback: 'spa',
        after_build: ['cp -n dist/client/_shell.html dist/client/index.html'],
      }
    }
    // Without a plugin that makes a server, the build leaves a handler of requests beside the files for the
    // browser.
    const hosted =
      uses(app, 'vinxi', 'nitro', 'nitropack', '@tanstack/nitro-v2-vite-plugin', '@tanstack/start') ||
      /nitro|target/.test(configText(app.tree, 'vite.config'))
    return hosted
      ? { ...SERVER, build }
      : {
          ...SERVER,
          build,
          start: 'srvx serve --prod --static=../client --entry=dist/server/server.js',
          programs: ['srvx@1'],
        }
  },
}

/** SolidStart. */
export const solidStart: NodeFramework = {
  name: 'solidstart',
  detect: (app) => uses(app, '@solidjs/start', 'solid-start'),
  plan: (app) => ({
    ...SERVER,
    build: usesVinxi(app) ? 'vinxi build' : 'vite build',
    ...(uses(app, 'solid-start') && { build: 'solid-start build', start: 'solid-start start' }),
  }),
}

/** Analog, the meta-framework of Angular. */
export const analog: NodeFramework = {
  name: 'analog',
  detect: (app) => uses(app, '@analogjs/platform'),
  plan: () => ({
    ...SERVER,
    build: 'vite build',
    start: 'node dist/analog/server/index.mjs',
    own_start: true,
  }),
}

/** Nitro by itself. */
export const nitro: NodeFramework = {
  name: 'nitro',
  detect: (app) =>
    uses(app, 'nitropack', 'nitro', 'nitropack-nightly') &&
    (['nitro.config.ts', 'nitro.config.js', 'nitro.config.mjs'].some((file) => app.tree.has(file)) ||
      /nitro/.test(app.manifest.scripts.get('build') ?? '')),
  plan: () => ({
    ...SERVER,
    build: 'nitro build',
    ready_path: undefined,
    own_start: true,
    bundle: '.output',
  }),
}

function usesVinxi(app: NodeApp): boolean {
  return uses(app, 'vinxi')
}
