import { configText, uses, type NodeApp } from '../manifest.ts'
import type { FrameworkPlan, NodeFramework } from './framework.ts'

/** Remix 1 and 2. */
export const remix: NodeFramework = {
  name: 'remix',
  detect: (app) =>
    uses(app, '@remix-run/react', '@remix-run/dev', '@remix-run/serve', '@remix-run/node') &&
    !uses(app, '@shopify/hydrogen'),
  plan(app) {
    const vite = /@remix-run\/dev/.test(configText(app.tree, 'vite.config'))
    if (vite && /ssr['"]?\s{0,9}:\s{0,9}false/.test(configText(app.tree, 'vite.config')))
      return spa('remix vite:build')
    const server = vite ? './build/server/index.js' : './build/index.js'
    return {
      kind: 'server',
      build: vite ? 'remix vite:build' : 'remix build',
      start: `remix-serve ${server}`,
      port: 3000,
      ready_path: '/',
    }
  },
}

/** React Router 7 in framework mode; the library alone is just a dependency of a Vite app. */
export const reactRouter: NodeFramework = {
  name: 'react-router',
  detect: (app) => uses(app, '@react-router/dev'),
  plan(app) {
    // Vite's own outDir is not read.
    const folder =
      /buildDirectory['"]?\s{0,9}:\s{0,9}['"`](?:\.\/)?([\w./-]{1,80}?)\/?['"`]/.exec(
        configText(app.tree, 'react-router.config'),
      )?.[1] ?? 'build'
    if (isSpa(app)) return spa('react-router build', folder)
    return {
      kind: 'server',
      build: 'react-router build',
      start: `react-router-serve ./${folder}/server/index.js`,
      port: 3000,
      ready_path: '/',
    }
  },
}

function isSpa(app: NodeApp): boolean {
  return /ssr['"]?\s{0,9}:\s{0,9}false/.test(configText(app.tree, 'react-router.config'))
}

function spa(build: string, folder = 'build'): FrameworkPlan {
  return { kind: 'static', build, output: `${folder}/client`, fallback: 'spa' }
}
