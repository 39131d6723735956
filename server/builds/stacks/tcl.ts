import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

/** Tcl: a script on the interpreter of the distribution. */
export const tcl = compiledStack({
  name: 'tcl',
  help: 'A main.tcl, server.tcl or app.tcl.',
  looked_for: ['main.tcl', 'server.tcl'],
  detect: (tree) => entry(tree) !== undefined && !tree.has('package.json'),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const file = entry(tree) ?? 'main.tcl'
    const wapp = /\bwapp\b/.test(skim(tree, file))
    return {
      framework: wapp ? 'wapp' : null,
      package_manager: null,
      install: null,
      build: null,
      start: `tclsh ${file}${wapp ? ' --server $PORT' : ''}`,
      port: 8080,
      source: file,
      runtime_packages: ['tcl', 'tcllib', 'tcl-tls', 'ca-certificates'],
    }
  },
})

const entry = (tree: SourceTree) =>
  firstOf(tree, ['main.tcl', 'server.tcl', 'app.tcl', 'index.tcl']) ??
  filesIn(tree).filter((path) => /^[\w.-]+\.tcl$/.test(path))[0]
