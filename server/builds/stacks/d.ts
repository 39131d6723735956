import type { SourceTree } from '../plan.ts'
import { readJson, textAt } from '../text-formats.ts'
import { firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

/** D with dub, on the compiler of the distribution. */
export const d = compiledStack({
  name: 'd',
  help: 'A dub.json or dub.sdl.',
  looked_for: ['dub.json', 'dub.sdl'],
  detect: (tree) => manifestOf(tree) !== undefined,
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const manifest = manifestOf(tree) ?? 'dub.json'
    const text = skim(tree, manifest)
    const fields = readJson(tree, 'dub.json')
    const requested =
      textAt(fields, 'targetName') ??
      textAt(fields, 'name') ??
      /^(?:targetName|name)\s+"([\w.-]{1,80})"/m.exec(text)?.[1]
    const name = requested !== undefined && /^[\w.-]{1,80}$/.test(requested) ? requested : 'app'
    return {
      framework: nameIn(text, { vibe: /vibe-(?:d|http|core)/, hunt: /\bhunt\b/, serverino: /\bserverino\b/ }),
      package_manager: 'dub',
      install: 'dub fetch --cache=local || true',
      build: 'dub build --build=release --compiler=ldc2',
      start: '/app/bin/app',
      port: 8080,
      source: manifest,
      manifests: [manifest, ...(tree.has('dub.selections.json') ? ['dub.selections.json'] : [])],
      build_packages: [
        'ldc',
        'dub',
        'gcc',
        'libc6-dev',
        'libssl-dev',
        'zlib1g-dev',
        'git',
        'ca-certificates',
      ],
      runtime_packages: ['ca-certificates', 'libssl3', 'zlib1g', 'libphobos2-ldc-shared100'],
      after_build: [
        `mkdir -p .out && cp "$(find . -maxdepth 2 -type f -name ${name} -perm -u+x | head -n 1)" .out/app && rm -rf bin && mv .out bin`,
      ],
    }
  },
})

const manifestOf = (tree: SourceTree) => firstOf(tree, ['dub.json', 'dub.sdl'])
