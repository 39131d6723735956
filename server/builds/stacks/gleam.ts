import { readToml, textAt } from '../text-formats.ts'
import { toolVersion } from '../versions.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

/** Gleam on Erlang: the exported shipment. */
export const gleam = compiledStack({
  name: 'gleam',
  help: 'A gleam.toml.',
  looked_for: ['gleam.toml'],
  detect: (tree) => tree.has('gleam.toml'),
  image: 'gleam',
  versions: (tree) => [toolVersion(tree, 'gleam'), requested(textAt(readToml(tree, 'gleam.toml'), 'gleam'))],
  facts: (tree) => ({
    framework: nameIn(tree.read('gleam.toml') ?? '', { wisp: /\bwisp\b/, mist: /\bmist\b/ }),
    package_manager: 'gleam',
    install: 'gleam deps download',
    build: 'gleam export erlang-shipment',
    start: '/bin/sh /app/build/erlang-shipment/entrypoint.sh run',
    port: 8000,
    source: 'gleam.toml',
    manifests: ['gleam.toml', 'manifest.toml'].filter((path) => tree.has(path)),
  }),
})

function requested(range: string | undefined) {
  return range === undefined ? undefined : { wanted: range, source: 'gleam.toml' }
}
