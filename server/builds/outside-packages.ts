import type { SourceTree } from './plan.ts'
import { readManifest } from './stacks/node/manifest.ts'
import { workspacePackages } from './stacks/node/workspaces.ts'

/** Names beyond these say no more. */
const MAX_NAMES = 5

/**
 * Packages of the repository's workspace that an app needs and that lie outside of its base directory, so that
 * its build does not see them. One that the folder has a lockfile for may come from a registry.
 */
export function outsidePackages(repository: SourceTree, folder: string): string[] {
  const root = readManifest(repository)
  const app = readManifest(repository, folder)
  const locks = ['package-lock.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb']
  if (!root || !app || locks.some((name) => repository.has(`${folder}/${name}`))) return []
  const inside = (path: string) => path === folder || path.startsWith(`${folder}/`)
  return workspacePackages(repository, root)
    .filter((one) => !inside(one.folder))
    .flatMap(({ name }) => (name !== undefined && app.production_dependencies.has(name) ? [name] : []))
    .filter((name) => /^(?:@[\w.-]{1,80}\/)?[\w.-]{1,100}$/.test(name))
    .slice(0, MAX_NAMES)
}

/** What is said of them; names stand in backticks, by which a failure is recognised that is about one. */
export const outsideWarning = (names: readonly string[], folder: string): string =>
  `${names.map((name) => `\`${name}\``).join(', ')} of this repository ${names.length === 1 ? 'lies' : 'lie'} outside of the base directory ${folder}, where the build does not see ${names.length === 1 ? 'it' : 'them'}. Clear the base directory: the workspace is then built as a whole, and the package is started that the start script of its root names, or the one that can be.`
