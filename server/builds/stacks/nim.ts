import { shellWord } from '#server/kernel/shell-word'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import type { SourceTree } from '../plan.ts'
import { compiledStack } from './compiled.ts'

/** Nim with nimble: one binary, linked to the libraries that its standard library loads. */
export const nim = compiledStack({
  name: 'nim',
  help: 'A .nimble file or a Nim program.',
  looked_for: ['*.nimble', 'main.nim'],
  detect: (tree) =>
    packageFile(tree) !== undefined || (mainFile(tree) !== undefined && !tree.has('package.json')),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const manifest = packageFile(tree)
    const text = skim(tree, manifest)
    const has_program = /^\s{0,9}bin\s{0,9}=/m.test(text)
    const main = mainFile(tree) ?? 'src/main.nim'
    const sources = `${text}\n${skim(tree, main)}`
    return {
      framework:
        ['jester', 'prologue', 'happyx', 'mummy', 'karax'].find((name) =>
          new RegExp(`\\b${name}\\b`).test(sources),
        ) ?? null,
      package_manager: manifest === undefined ? null : 'nimble',
      install: manifest === undefined ? null : 'nimble install --depsOnly --accept',
      build:
        manifest !== undefined && has_program
          ? 'nimble build --accept -d:release'
          : `nim compile -d:release --out:bin/app ${shellWord(main)}`,
      start: '/app/bin/app',
      port: /\bjester\b/.test(sources) ? 5000 : 8080,
      source: manifest ?? main,
      manifests: manifest === undefined ? [] : [manifest],
      build_packages: ['nim', 'gcc', 'libc6-dev', 'git', 'ca-certificates', 'libssl-dev'],
      runtime_packages: ['ca-certificates', 'libssl3', 'libpcre3', 'libsqlite3-0'],
      after_build: [
        'mkdir -p bin && { [ -x bin/app ] || cp "$(find . -maxdepth 2 -type f -perm -u+x ! -name "*.*" ! -path "./.git/*" | head -n 1)" bin/app; }',
      ],
    }
  },
})

const packageFile = (tree: SourceTree) => filesIn(tree).find((path) => path.endsWith('.nimble'))

function mainFile(tree: SourceTree): string | undefined {
  const named = packageFile(tree)?.replace(/\.nimble$/, '')
  return firstOf(tree, [
    ...(named === undefined ? [] : [`src/${named}.nim`, `${named}.nim`]),
    'src/main.nim',
    'src/app.nim',
    'src/server.nim',
    'main.nim',
    'app.nim',
    'server.nim',
  ])
}
