import { configText, majorOf, uses, type NodeApp } from '../manifest.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { CheckedLine } from '../../../checks.ts'
import type { NodeFramework } from './framework.ts'

/**
 * Next.js: a server by default, its own small bundle with `output: 'standalone'`, files with `output:
 * 'export'`.
 */
export const nextjs: NodeFramework = {
  name: 'nextjs',
  detect: (app) => uses(app, 'next'),
  plan(app) {
    const config = configText(app.tree, 'next.config')
    const mode = /output['"]?\s{0,9}:\s{0,9}['"`](standalone|export)['"`]/.exec(config)?.[1]
    const node = (majorOf(app, 'next') ?? 99) < 11 ? '16' : undefined
    const build_env = { NEXT_TELEMETRY_DISABLED: '1' }
    const build_script = app.manifest.scripts.get('build') ?? ''
    if (mode === 'export' || build_script.includes('next export')) {
      return {
        kind: 'static',
        build: 'next build',
        output: outputFolder(config, 'out'),
        fallback: 'pages',
        caches: ['.next/cache'],
        build_env,
        node,
      }
    }
    const caches = [`${outputFolder(config, '.next')}/cache`]
    const env = { ...build_env, HOSTNAME: '0.0.0.0' }
    const ready_path = hasHomePage(app) && !/basePath|i18n/.test(config) ? '/' : undefined
    if (mode === 'standalone' && !customServer(app))
      return { ...standalone(app, config), build_env, caches, env, ready_path, node }
    return {
      kind: 'server',
      build: 'next build',
      start: 'next start',
      port: 3000,
      caches,
      env,
      build_env,
      ready_path,
      node,
    }
  },
}

/** The bundle lacks what a CDN would serve; the framework's documentation has these two copies. */
function standalone(app: NodeApp, config: string) {
  const output = outputFolder(config, '.next')
  const bundle = `${output}/standalone`
  const inside = app.manifest.folder === '' ? bundle : `${bundle}/${app.manifest.folder}`
  const copies: (string | CheckedLine)[] = [
    {
      line: `test -d ${shellWord(bundle)} && mkdir -p ${shellWord(`${inside}/${output}`)} && cp -R ${shellWord(`${output}/static`)} ${shellWord(`${inside}/${output}/`)}`,
      otherwise: `The build left no folder \`${bundle}\`.`,
      hint: "next.config names output: 'standalone', which this build did not make: set it without conditions, or set the start command of the app.",
    },
  ]
  if (app.tree.files().some((path) => path.startsWith('public/')))
    copies.push(`cp -R public ${shellWord(`${inside}/`)}`)
  const server = app.manifest.folder === '' ? 'server.js' : `${app.manifest.folder}/server.js`
  return {
    kind: 'server' as const,
    build: 'next build',
    start: `node ${shellWord(server)}`,
    own_start: true,
    port: 3000,
    bundle,
    after_build: copies,
  }
}

function outputFolder(config: string, otherwise: string): string {
  return (
    /distDir['"]?\s{0,9}:\s{0,9}['"`]([A-Za-z0-9._/-]{1,80})['"`]/.exec(config)?.[1]?.replace(/^\.\//, '') ??
    otherwise
  )
}

function customServer(app: NodeApp): boolean {
  const start = app.manifest.scripts.get('start') ?? ''
  return (
    /\b(?:node|tsx|ts-node|bun)\s/.test(start) && !start.includes('standalone') && !start.includes('next')
  )
}

function hasHomePage(app: NodeApp): boolean {
  return app.tree
    .files()
    .some((path) => /^(?:src\/)?(?:pages\/index|app\/(?:\([^/)]+\)\/)*page)\.(?:jsx?|tsx?|mdx?)$/.test(path))
}
