import { joinPath } from '../../tree-queries.ts'
import type { ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import type { PackageManager } from './package-manager.ts'

const STORE = '/root/.local/share/pnpm/store'
const YARN = '/root/.cache/yarn'

/** Where package managers keep what they downloaded, said outright: each would choose by what it finds. */
export function cacheFolders({ name, berry }: PackageManager): Readonly<Record<string, string>> {
  if (name === 'pnpm') return { npm_config_store_dir: STORE }
  return name === 'yarn' && !berry ? { YARN_CACHE_FOLDER: YARN } : {}
}

const OF_MANAGER = {
  npm: ['/root/.npm'],
  pnpm: ['/root/.npm', STORE],
  yarn: ['/root/.npm', '/root/.yarn/berry'],
  bun: ['/root/.npm', '/root/.bun/install/cache'],
} as const

/** Folders in which tools keep what they compiled, below the folder of a package. */
const OF_TOOLS = ['node_modules/.cache', 'node_modules/.vite']
const OF_FRAMEWORK: ReadonlyMap<string, readonly string[]> = new Map([
  ['angular', ['.angular/cache']],
  ['astro', ['node_modules/.astro']],
  ['parcel', ['.parcel-cache']],
  ['snowpack', ['.snowpack']],
])

/** What is kept from build to build of a Node app. */
export function nodeCaches(
  { app, manager, framework }: ChosenApp,
  facts: FrameworkPlan,
  archives: Readonly<Record<string, string>>,
): { caches: string[]; build_caches: string[] } {
  const { folder } = app.manifest
  // Archives of Yarn that the app is run from are no cache.
  const caches = Object.keys(archives).length > 0 ? ['/root/.npm'] : [...OF_MANAGER[manager.name]]
  const inside = [...OF_TOOLS, ...(OF_FRAMEWORK.get(framework?.name ?? '') ?? []), ...(facts.caches ?? [])]
  const at_root = [
    ...OF_TOOLS,
    ...(app.root.has('turbo.json') ? ['.turbo/cache'] : []),
    ...(app.root.has('nx.json') ? ['.nx/cache'] : []),
  ]
  const paths = [...at_root, ...inside.map((path) => joinPath(folder, path))]
  return {
    caches,
    build_caches: [...new Set(paths)].filter((path) => PLAIN.test(path)).map((path) => `/app/${path}`),
  }
}

/** A path that stays below the work folder and needs no quotes. */
const PLAIN = /^(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9._@+-]+\/)*(?!\.{1,2}$)[A-Za-z0-9._@+-]+$/
