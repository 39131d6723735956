import type { SourceTree } from '../plan.ts'
import { filesIn, filesNamed, folderOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

const INSTALL = 'opam install . --deps-only --yes'

/**
 * OCaml with dune; its libraries come through opam, on the compiler of the distribution, which saves building
 * one.
 */
export const ocaml = compiledStack({
  name: 'ocaml',
  help: 'A dune-project or an .opam file.',
  looked_for: ['dune-project', '*.opam'],
  detect: (tree) => tree.has('dune-project') || opamFiles(tree).length > 0,
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const program = programOf(tree)
    const text = [
      skim(tree, 'dune-project'),
      ...opamFiles(tree).map((path) => skim(tree, path)),
      skim(tree, program?.file),
    ].join('\n')
    const packages = opamFiles(tree)
    const unlisted = /\(depends\b/.test(text)
      ? `opam exec -- dune build *.opam; ${INSTALL}`
      : `opam install ${['dune', ...(program?.libraries ?? [])].join(' ')} --yes`
    return {
      framework:
        ['dream', 'opium', 'sihl', 'cohttp', 'eliom'].find((name) =>
          new RegExp(`\\b${name}\\b`).test(text),
        ) ?? null,
      package_manager: 'opam',
      install: packages.length > 0 ? INSTALL : unlisted,
      build: `opam exec -- dune build --profile release ${program === undefined ? '@install' : `./${program.target}`}`,
      start: '/app/bin/app',
      port: 8080,
      source: tree.has('dune-project') ? 'dune-project' : packages[0]!,
      manifests:
        packages.length > 0 ? [...packages, ...(tree.has('dune-project') ? ['dune-project'] : [])] : [],
      build_packages: [
        'opam',
        'ocaml-nox',
        'build-essential',
        'pkg-config',
        'm4',
        'git',
        'ca-certificates',
        'unzip',
        'rsync',
        'libev-dev',
        'libgmp-dev',
        'libssl-dev',
        'libsqlite3-dev',
      ],
      runtime_packages: ['ca-certificates', 'libev4', 'libgmp10', 'libssl3', 'libsqlite3-0'],
      build_setup: [
        'opam init --bare --disable-sandboxing --no-setup --yes && opam switch create default --packages=ocaml-system --yes && opam install dune --yes',
      ],
      build_env: { OPAMROOTISOK: '1' },
      after_build: [
        `mkdir -p bin && cp -L ${program === undefined ? '"$(find _build/default -name "*.exe" -type f | head -n 1)"' : `_build/default/${program.target}`} bin/app && chmod u+w bin/app && rm -rf _build`,
      ],
    }
  },
})

const opamFiles = (tree: SourceTree) => filesIn(tree).filter((path) => path.endsWith('.opam'))

/**
 * The first executable that a dune file names, preferring `bin/`; names are checked, because they become part
 * of a command.
 */
function programOf(tree: SourceTree): { target: string; file: string; libraries: string[] } | undefined {
  const files = filesNamed(tree, 'dune', 3).toSorted(
    (a, b) => Number(b.startsWith('bin/')) - Number(a.startsWith('bin/')),
  )
  for (const file of files) {
    const text = skim(tree, file)
    const name = /\(executables?\b[^]{0,400}?\(names?\s{1,9}([\w-]{1,80})/.exec(text)?.[1]
    if (name === undefined || !/^[\w./-]*$/.test(folderOf(file))) continue
    const libraries = (/\(libraries\s{1,9}([\w\s.-]{1,400})\)/.exec(text)?.[1] ?? '')
      .split(/\s+/)
      .map((library) => library.split('.')[0]!)
      .filter((library) => /^[a-z][\w-]*$/.test(library))
    return {
      target: `${folderOf(file) === '' ? '' : `${folderOf(file)}/`}${name}.exe`,
      file,
      libraries: [...new Set(libraries)],
    }
  }
  return undefined
}
