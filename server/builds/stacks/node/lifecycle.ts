import type { SourceTree } from '../../plan.ts'
import { asFields, at } from '../../text-formats.ts'
import { joinPath } from '../../tree-queries.ts'
import type { Manifest } from './manifest.ts'

const SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish']
/** Programs that do their work, or nothing, with the manifests alone. */
const HARMLESS =
  /^(?:(?:npx|pnpm|yarn|bunx)\s+)?(?:husky(?:\s+install)?|simple-git-hooks|lefthook\s+install|is-ci|only-allow\s+\w+|nuxt\s+prepare|nuxi\s+prepare|npx\s+nuxi\s+prepare|svelte-kit\s+sync|fumadocs-mdx|patch-package|prisma\s+generate|ngcc|echo\b.*|true|exit\s+0|''|""|electron-builder\s+install-app-deps|ts-patch\s+install(?:\s+-s)?)$/

/**
 * Files that install scripts read besides the manifests, or undefined when a script may read anything, in
 * which case the whole source must be there before the install.
 */
export function lifecycleFiles(tree: SourceTree, manifests: readonly Manifest[]): string[] | undefined {
  const files: string[] = []
  for (const manifest of manifests) {
    for (const name of SCRIPTS) {
      const script = manifest.scripts.get(name)
      if (script === undefined) continue
      for (const part of script.split(/&&|\|\||;/)) {
        const command = part.trim()
        if (HARMLESS.test(command)) continue
        const file = /^node\s+(\.?[A-Za-z0-9._/-]+)$/.exec(command)?.[1]
        const path = file === undefined ? undefined : joinPath(manifest.folder, file)
        // A script of one file that imports its neighbours is as likely as one that does not.
        if (
          path === undefined ||
          !tree.has(path) ||
          /\bfrom\s+['"]\.|require\(['"]\./.test(tree.read(path) ?? '')
        )
          return undefined
        files.push(path)
      }
    }
    if (manifest.dependencies.has('prisma') || manifest.dependencies.has('@prisma/client'))
      files.push(...prismaFiles(tree, manifest.folder))
    files.push(...tree.files().filter((path) => path.startsWith(joinPath(manifest.folder, 'patches/'))))
  }
  return files
}

/** Programs that a package of the monorepo brings: an install links only those that are there. */
export function programFiles(tree: SourceTree, manifest: Manifest): string[] {
  const bin = at(manifest.fields, 'bin')
  const paths = typeof bin === 'string' ? [bin] : Object.values(asFields(bin) ?? {})
  return paths
    .flatMap((path) =>
      typeof path === 'string' && !path.includes('..')
        ? joinPath(manifest.folder, path.replace(/^\.\//, ''))
        : [],
    )
    .filter((path) => tree.has(path))
    .slice(0, 20)
}

/** The schema and its parts; the client's own install script generates code from them. */
function prismaFiles(tree: SourceTree, folder: string): string[] {
  const prefix = joinPath(folder, 'prisma/')
  const schemas = tree.files().filter((path) => path.startsWith(prefix) && path.endsWith('.prisma'))
  return schemas.length > 20 ? [] : schemas
}
