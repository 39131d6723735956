import type { SourceTree } from '../plan.ts'
import { at, keysAt, listAt, readToml, textAt } from '../text-formats.ts'
import { skim } from '../tree-queries.ts'
import { toolVersion } from '../versions.ts'
import { compiledStack, type CompiledFacts } from './compiled.ts'

const MACHINE = '$(uname -m)'
const TARGET = 'rustup target add wasm32-unknown-unknown'

type Tool = 'trunk' | 'dioxus' | 'leptos'

/**
 * Rust for the browser: Trunk's and Dioxus's pages are files, an app of cargo-leptos is a server that brings
 * its own.
 */
export const rustWeb = compiledStack({
  name: 'rust',
  help: 'A Cargo.toml, and an index.html for Trunk, a Dioxus.toml, or the settings of cargo-leptos.',
  looked_for: ['Trunk.toml', 'Dioxus.toml'],
  detect: (tree) => tree.has('Cargo.toml') && toolOf(tree) !== undefined,
  image: 'rust',
  versions(tree) {
    const channel = textAt(readToml(tree, 'rust-toolchain.toml'), 'toolchain', 'channel')
    return [
      channel !== undefined && /^\d+\.\d+/.test(channel)
        ? { wanted: channel, source: 'rust-toolchain.toml' }
        : undefined,
      toolVersion(tree, 'rust'),
    ]
  },
  facts(tree) {
    const tool = toolOf(tree) ?? 'trunk'
    const facts = { trunk, dioxus, leptos }[tool](tree)
    return { package_manager: 'cargo', install: TARGET, ...facts, framework: facts.framework }
  },
})

type Facts = Omit<CompiledFacts, 'package_manager' | 'install'> & { framework: string }

function toolOf(tree: SourceTree): Tool | undefined {
  const manifest = readToml(tree, 'Cargo.toml')
  if (leptosSettings(tree) !== undefined) return 'leptos'
  if (tree.has('Trunk.toml') || /\bdata-trunk\b/.test(skim(tree, 'index.html'))) return 'trunk'
  const dioxus_features = [
    ...listAt(manifest, 'dependencies', 'dioxus', 'features'),
    ...keysAt(manifest, 'features'),
  ]
  if (
    tree.has('Dioxus.toml') &&
    !dioxus_features.some(
      (name) =>
        ['fullstack', 'server', 'desktop', 'liveview'].includes(name) && !dioxus_features.includes('web'),
    )
  )
    return 'dioxus'
  // A page beside the programs of a client-side framework is Trunk's, which needs no mark in it.
  return tree.has('index.html') &&
    ['yew', 'sycamore', 'seed', 'perseus'].some((name) => keysAt(manifest, 'dependencies').includes(name))
    ? 'trunk'
    : undefined
}

function leptosSettings(tree: SourceTree): unknown {
  const manifest = readToml(tree, 'Cargo.toml')
  const list = at(manifest, 'workspace', 'metadata', 'leptos')
  return at(manifest, 'package', 'metadata', 'leptos') ?? (Array.isArray(list) ? list[0] : list)
}

const named = (name: string | undefined): string =>
  name !== undefined && /^[\w-]{1,80}$/.test(name) ? name : 'app'

function trunk(tree: SourceTree): Facts {
  const folder = textAt(readToml(tree, 'Trunk.toml'), 'build', 'dist')?.replace(/^\.\//, '')
  const output =
    folder !== undefined && /^[\w./-]{1,80}$/.test(folder) && !folder.includes('..') ? folder : 'dist'
  return {
    framework: 'trunk',
    build: 'trunk build --release',
    start: null,
    port: 8080,
    source: tree.has('Trunk.toml') ? 'Trunk.toml' : 'index.html',
    build_packages: ['curl', 'ca-certificates'],
    build_setup: [
      `curl -fsSL "https://github.com/trunk-rs/trunk/releases/download/v0.21.14/trunk-${MACHINE}-unknown-linux-gnu.tar.gz" | tar -xz -C /usr/local/bin`,
    ],
    static_site: { from: `/app/${output}`, fallback: 'spa' },
  }
}

function dioxus(tree: SourceTree): Facts {
  const manifest = readToml(tree, 'Cargo.toml')
  const requested =
    /(\d+\.\d+)/.exec(
      textAt(manifest, 'dependencies', 'dioxus', 'version') ??
        textAt(manifest, 'dependencies', 'dioxus') ??
        '',
    )?.[1] ?? '0.6'
  const name = named(
    textAt(readToml(tree, 'Dioxus.toml'), 'application', 'name') ?? textAt(manifest, 'package', 'name'),
  )
  return {
    framework: 'dioxus',
    build: 'dx bundle --platform web --release',
    start: null,
    port: 8080,
    source: 'Dioxus.toml',
    build_packages: ['curl', 'ca-certificates'],
    // Its command line tool must be of the library's own version.
    build_setup: [
      'curl -fsSL https://raw.githubusercontent.com/cargo-bins/cargo-binstall/main/install-from-binstall-release.sh | bash',
      `cargo binstall --no-confirm dioxus-cli@^${requested}`,
    ],
    static_site: { from: `/app/target/dx/${name}/release/web/public`, fallback: 'spa' },
  }
}

function leptos(tree: SourceTree): Facts {
  const settings = leptosSettings(tree)
  const name = named(
    textAt(settings, 'bin-target') ??
      textAt(settings, 'bin-package') ??
      textAt(readToml(tree, 'Cargo.toml'), 'package', 'name'),
  )
  const output = named(textAt(settings, 'output-name') ?? name)
  return {
    framework: 'leptos',
    build: 'cargo leptos build --release',
    start: '/app/bin/app',
    port: 8080,
    source: 'metadata.leptos in Cargo.toml',
    build_packages: ['curl', 'ca-certificates'],
    build_setup: [
      `curl -fsSL "https://github.com/leptos-rs/cargo-leptos/releases/latest/download/cargo-leptos-${MACHINE}-unknown-linux-gnu.tar.gz" | tar -xz --strip-components=1 -C /usr/local/bin`,
    ],
    after_build: [
      `mkdir -p bin && cp target/release/${name} bin/app && mv target/site site && rm -rf target`,
    ],
    runtime_env: {
      LEPTOS_OUTPUT_NAME: output,
      LEPTOS_SITE_ROOT: 'site',
      LEPTOS_SITE_PKG_DIR: textAt(settings, 'site-pkg-dir') ?? 'pkg',
      LEPTOS_SITE_ADDR: '0.0.0.0:8080',
    },
  }
}
