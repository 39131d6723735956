import { baseImage } from '../../base-images.ts'
import type { NodeAssets } from '../../layout.ts'
import type { SourceTree } from '../../plan.ts'
import { readManifest } from './manifest.ts'
import { choosePackageManager, installFiles, scriptLine } from './package-manager.ts'

/** Front-end assets that an app in another language builds with Node: a package.json with a build script. */
export function nodeAssets(tree: SourceTree, needed = false): NodeAssets | undefined {
  const manifest = readManifest(tree)
  if (manifest === undefined) return undefined
  const script = ['build', 'production', 'prod', 'build:prod', 'deploy'].find((name) =>
    manifest.scripts.has(name),
  )
  if (script === undefined && !needed) return undefined
  const manager = choosePackageManager(tree, manifest)
  return {
    image: baseImage('node'),
    setup: manager.setup,
    manifests: ['package.json', ...installFiles(tree)],
    install: manager.install,
    build: script === undefined ? null : scriptLine(manager, script),
  }
}
