import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Plugin } from 'esbuild'
import { readMigrations } from '../scripts/read-migrations.ts'

/**
 * What the build of the server makes: the migrations, and the templates, which no command of the host reads.
 */
export const virtualPlugin = (root: string): Plugin => ({
  name: 'virtual',
  setup(bundle) {
    bundle.onResolve({ filter: /^#(migrations|templates)$/ }, ({ path }) => ({ path, namespace: 'virtual' }))
    bundle.onLoad({ filter: /.*/, namespace: 'virtual' }, ({ path }) => ({
      contents:
        path === '#migrations'
          ? `export const migrations = ${JSON.stringify(readMigrations(root))}`
          : 'export const readShelf = async () => []',
    }))
  },
})

/**
 * Libraries in the older form of modules that are loaded with `import()`. Split into parts, esbuild would give
 * them a default export alone; this gives them the names that Node gives them.
 */
export const namesPlugin: Plugin = {
  name: 'names',
  setup(bundle) {
    // Names of modules stand in the bundle, which is the same wherever it is made.
    const root = bundle.initialOptions.absWorkingDir ?? process.cwd()
    bundle.onResolve({ filter: /^[a-z@][^:]*$/i }, async ({ path, kind, resolveDir, namespace }) => {
      if (kind !== 'dynamic-import' || namespace !== 'file') return undefined
      const found = await bundle.resolve(path, { kind: 'import-statement', resolveDir })
      if (found.external || found.errors.length > 0) return found
      return { path: relative(root, found.path), namespace: 'names' }
    })
    bundle.onLoad({ filter: /.*/, namespace: 'names' }, async ({ path: place }) => {
      const path = join(root, place)
      const names = Object.keys((await import(pathToFileURL(path).href)) as object)
      const lines = names
        .filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default')
        .map((name) => `export const ${name} = all.${name}`)
      return {
        contents: [
          `import * as all from ${JSON.stringify(path)}`,
          ...lines,
          ...(names.includes('default') ? ['export default all.default'] : []),
        ].join('\n'),
        resolveDir: '/',
      }
    })
  },
}
