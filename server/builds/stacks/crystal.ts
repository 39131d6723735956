import { shellWord } from '#server/kernel/shell-word'
import { filesIn, firstLine } from '../tree-queries.ts'
import { readYaml, textAt, keysAt } from '../text-formats.ts'
import { toolVersion } from '../versions.ts'
import { compiledStack } from './compiled.ts'

/** Crystal: one binary, in the image it was linked in. */
export const crystal = compiledStack({
  name: 'crystal',
  help: 'A shard.yml.',
  looked_for: ['shard.yml'],
  detect: (tree) =>
    tree.has('shard.yml') ||
    (filesIn(tree).some((path) => path.endsWith('.cr')) && !tree.has('package.json')),
  image: 'crystal',
  versions(tree) {
    const range = textAt(readYaml(tree, 'shard.yml'), 'crystal')
    const file = firstLine(tree, '.crystal-version')
    return [
      file === undefined ? undefined : { wanted: file, source: '.crystal-version' },
      toolVersion(tree, 'crystal'),
      range === undefined ? undefined : { wanted: range, source: 'shard.yml' },
    ]
  },
  facts(tree) {
    const shard = readYaml(tree, 'shard.yml')
    const target = keysAt(shard, 'targets')[0]
    const main =
      (target === undefined ? undefined : textAt(shard, 'targets', target, 'main')) ??
      [`src/${textAt(shard, 'name') ?? ''}.cr`, 'src/main.cr', 'src/app.cr', 'src/server.cr'].find((path) =>
        tree.has(path),
      ) ??
      filesIn(tree, 'src').find((path) => path.endsWith('.cr')) ??
      filesIn(tree).find((path) => path.endsWith('.cr')) ??
      'src/main.cr'
    const dependencies = keysAt(shard, 'dependencies')
    return {
      framework:
        ['lucky', 'amber', 'kemal', 'athena', 'grip', 'marten'].find((name) => dependencies.includes(name)) ??
        null,
      package_manager: tree.has('shard.yml') ? 'shards' : null,
      install: tree.has('shard.yml') ? 'shards install' : null,
      build: `mkdir -p bin && crystal build --release --no-debug -o bin/app ${shellWord(main)}`,
      start: '/app/bin/app',
      port: 3000,
      source: tree.has('shard.yml') ? 'shard.yml' : main,
      manifests: ['shard.yml', 'shard.lock'].filter((path) => tree.has(path)),
    }
  },
})
