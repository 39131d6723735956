import type { SourceTree } from '../plan.ts'
import { filesIn, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

/** V: its compiler comes with the latest release, as its makers advise. */
export const vlang = compiledStack({
  name: 'v',
  help: 'A v.mod.',
  looked_for: ['v.mod'],
  // Coq and Verilog have files of the same ending.
  detect: (tree) => tree.has('v.mod'),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const text = sources(tree)
      .slice(0, 20)
      .map((path) => skim(tree, path))
      .join('\n')
    return {
      framework: nameIn(text, { veb: /^import (?:x\.)?veb\b/m, vweb: /^import vweb\b/m }),
      package_manager: 'v',
      install: 'v install',
      build: 'mkdir -p bin && v -prod -o bin/app .',
      start: '/app/bin/app',
      port: 8080,
      source: 'v.mod',
      manifests: ['v.mod'],
      build_packages: [
        'curl',
        'ca-certificates',
        'unzip',
        'git',
        'gcc',
        'make',
        'libc6-dev',
        'libssl-dev',
        'libsqlite3-dev',
        'libpq-dev',
        'libatomic1',
      ],
      runtime_packages: ['ca-certificates', 'libssl3', 'libsqlite3-0', 'libpq5', 'libatomic1'],
      build_setup: [
        'curl -fsSL -o /tmp/v.zip "https://github.com/vlang/v/releases/latest/download/v_linux$(uname -m | sed -e s/x86_64// -e s/aarch64/_arm64/).zip" && unzip -q /tmp/v.zip -d /opt && ln -s /opt/v/v /usr/local/bin/v',
      ],
    }
  },
})

const sources = (tree: SourceTree) =>
  [...filesIn(tree), ...filesIn(tree, 'src')].filter((path) => path.endsWith('.v'))
