import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import { filesIn, skim } from '../tree-queries.ts'
import { toolVersion, versionFile } from '../versions.ts'
import type { SourceTree } from '../plan.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

const DEFAULT = '0.14.1'

/** Zig: its compiler comes from PyPI, which has every release under its own number. */
export const zig = compiledStack({
  name: 'zig',
  help: 'A build.zig.',
  looked_for: ['build.zig', 'build.zig.zon'],
  detect: (tree) =>
    tree.has('build.zig') ||
    (filesIn(tree).some((path) => path.endsWith('.zig')) && !tree.has('package.json')),
  image: 'python',
  runtime_image: () => baseImage('debian'),
  versions: () => [],
  facts(tree) {
    const project = tree.has('build.zig')
    const main =
      ['main.zig', 'src/main.zig'].find((path) => tree.has(path)) ??
      filesIn(tree).find((path) => path.endsWith('.zig')) ??
      'main.zig'
    return {
      framework: nameIn(skim(tree, 'build.zig.zon'), {
        zap: /\bzap\b/,
        httpz: /httpz|http\.zig/,
        jetzig: /jetzig/,
      }),
      package_manager: 'zig',
      install: null,
      build: project
        ? 'python -m ziglang build -Doptimize=ReleaseSafe'
        : `mkdir -p zig-out/bin && python -m ziglang build-exe -O ReleaseSafe -femit-bin=zig-out/bin/app ${shellWord(main)}`,
      start: '/app/bin/app',
      port: 8080,
      source: project ? 'build.zig' : main,
      build_packages: ['git', 'ca-certificates'],
      build_setup: [`pip install --no-cache-dir ziglang==${zigVersion(tree)}`],
      after_build: [
        'mkdir -p bin && cp "$(ls -S zig-out/bin/* | head -n 1)" bin/app && rm -rf .zig-cache zig-cache zig-out',
      ],
    }
  },
})

function zigVersion(tree: SourceTree): string {
  const requested =
    versionFile(tree, '.zig-version', '.zigversion')?.wanted ??
    toolVersion(tree, 'zig')?.wanted ??
    /minimum_zig_version\s{0,5}=\s{0,5}"(\d+\.\d+\.\d+)"/.exec(skim(tree, 'build.zig.zon'))?.[1]
  return requested !== undefined && /^\d+\.\d+\.\d+$/.test(requested) ? requested : DEFAULT
}
