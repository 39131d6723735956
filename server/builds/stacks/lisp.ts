import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

const QUICKLISP = '/opt/quicklisp'

/** Common Lisp on SBCL, with the packages of Quicklisp. */
export const lisp = compiledStack({
  name: 'lisp',
  help: 'An .asd file.',
  looked_for: ['*.asd'],
  detect: (tree) => systemFile(tree) !== undefined,
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const file = systemFile(tree) ?? 'app.asd'
    const system = file.replace(/\.asd$/, '')
    const text = skim(tree, file)
    const script = firstOf(tree, ['main.lisp', 'server.lisp', 'start.lisp', 'run.lisp'])
    const load = `sbcl --non-interactive --load ${QUICKLISP}/setup.lisp --eval '(push #p"/app/" asdf:*central-registry*)' --eval '(ql:quickload :${system})'`
    return {
      framework:
        ['caveman2', 'ningle', 'radiance', 'clack', 'woo', 'hunchentoot'].find((name) =>
          text.includes(name),
        ) ?? null,
      package_manager: 'quicklisp',
      install: null,
      build: load,
      start:
        script === undefined
          ? `${load} --eval '(uiop:symbol-call :${system} :main)'`
          : `${load} --load ${script}`,
      port: 5000,
      source: file,
      build_packages: ['sbcl', 'cl-quicklisp', 'ca-certificates', 'libssl-dev'],
      runtime_packages: ['sbcl', 'ca-certificates', 'libssl-dev'],
      build_setup: [
        `sbcl --non-interactive --load /usr/share/common-lisp/source/quicklisp/quicklisp.lisp --eval '(quicklisp-quickstart:install :path "${QUICKLISP}/")'`,
      ],
      runtime_env: { XDG_CACHE_HOME: '/app/.cache' },
      build_env: { XDG_CACHE_HOME: '/app/.cache' },
      keep: [
        { from: QUICKLISP, to: QUICKLISP },
        { from: '/app', to: '/app' },
      ],
    }
  },
})

/** The system that the repository is about, not its tests. */
function systemFile(tree: SourceTree): string | undefined {
  const files = filesIn(tree).filter((path) => /^[\w-]{1,80}\.asd$/.test(path))
  return files.find((path) => !/test/.test(path)) ?? files[0]
}
