import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

/** Racket: compiled in place, run by the interpreter of the distribution. */
export const racket = compiledStack({
  name: 'racket',
  help: 'An info.rkt, or a main.rkt, server.rkt or app.rkt.',
  looked_for: ['info.rkt', 'main.rkt'],
  detect: (tree) => entry(tree) !== undefined && !tree.has('package.json'),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const file = entry(tree) ?? 'main.rkt'
    const project = tree.has('info.rkt')
    return {
      framework: /web-server/.test(skim(tree, file)) ? 'web-server' : null,
      package_manager: project ? 'raco' : null,
      install: project ? 'raco pkg install --auto --no-docs --scope installation --link .' : null,
      build: `raco make ${file}`,
      start: `racket ${file}`,
      port: 8080,
      source: file,
      build_packages: ['racket', 'ca-certificates', 'git'],
      runtime_packages: ['racket', 'ca-certificates'],
      keep: [
        { from: '/usr/share/racket', to: '/usr/share/racket' },
        { from: '/app', to: '/app' },
      ],
    }
  },
})

function entry(tree: SourceTree): string | undefined {
  const scripts = filesIn(tree).filter((path) => /^[\w.-]+\.rkt$/.test(path) && path !== 'info.rkt')
  return firstOf(tree, ['main.rkt', 'server.rkt', 'app.rkt', 'web.rkt', 'src/main.rkt']) ?? scripts[0]
}
