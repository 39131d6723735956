import type { SourceTree } from '../plan.ts'
import { firstOf, skim } from '../tree-queries.ts'
import { portOfSource } from './node/start-command.ts'
import { versionFile } from '../versions.ts'
import { compiledStack } from './compiled.ts'

const NAMES = ['server', 'app', 'index', 'main', 'src/server', 'src/index', 'src/app', 'src/main'].flatMap(
  (base) => ['.js', '.mjs', '.cjs', '.ts'].map((ending) => base + ending),
)

/**
 * A server for Node in one file, without a package.json. A page may bring scripts of the same names: they
 * open no port.
 */
export const nodeFile = compiledStack({
  name: 'node',
  help: 'A server.js or index.js that listens on a port.',
  looked_for: ['server.js', 'index.js'],
  detect: (tree) => serverFile(tree) !== undefined,
  image: 'node',
  versions: (tree) => [versionFile(tree, '.nvmrc', '.node-version')],
  facts(tree) {
    const file = serverFile(tree) ?? 'server.js'
    return {
      package_manager: null,
      install: null,
      build: null,
      start: `node ${file}`,
      port: portOfSource(tree, `node ${file}`) ?? 3000,
      source: file,
    }
  },
})

function serverFile(tree: SourceTree): string | undefined {
  return tree.has('package.json')
    ? undefined
    : firstOf(
        tree,
        NAMES.filter(
          (path) => tree.has(path) && /\.listen\s{0,9}\(|\bcreateServer\s{0,9}\(/.test(skim(tree, path)),
        ),
      )
}
