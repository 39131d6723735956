import { own } from '#server/kernel/own'
import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../plan.ts'
import { compare, filesNamed, firstLine, folderOf, hasFolder, joinPath, skim } from '../tree-queries.ts'
import { asFields, at, keysAt, listAt, readToml, textAt } from '../text-formats.ts'
import { chooseVersion, toolVersion } from '../versions.ts'
import { TCP, because, type Commands, type Stack, type StackContext } from './stack.ts'

const FRAMEWORKS = [
  'loco-rs',
  'leptos',
  'dioxus',
  'axum',
  'actix-web',
  'rocket',
  'poem',
  'salvo',
  'warp',
  'tide',
  'gotham',
  'ntex',
  'viz',
  'hyper',
]
const PORTS: Readonly<Record<string, number>> = { rocket: 8000, 'loco-rs': 5150, 'actix-web': 8080 }

/** Names that frameworks are known by, where the crate's is another. */
const SHORT_NAMES: Readonly<Record<string, string>> = { 'actix-web': 'actix', 'loco-rs': 'loco' }

/** Rust: one binary of the workspace; the source folder goes along for templates and assets. */
export const rust: Stack = {
  name: 'rust',
  help: 'A Cargo.toml.',
  looked_for: ['Cargo.toml'],
  detect: (tree) =>
    tree.has('Cargo.toml') &&
    !/maturin|setuptools-rust/.test(skim(tree, 'pyproject.toml')) &&
    (!tree.has('package.json') ||
      tree.has('src/main.rs') ||
      at(readToml(tree, 'Cargo.toml'), 'workspace') !== undefined ||
      hasFolder(tree, 'src/bin')),
  plan: planRust,
}

function planRust({ tree, version_request }: StackContext) {
  const manifests = filesNamed(tree, 'Cargo.toml', 3).slice(0, 100)
  const names = new Set(
    manifests.flatMap((path) => [
      ...keysAt(readToml(tree, path), 'dependencies'),
      ...keysAt(readToml(tree, path), 'workspace', 'dependencies'),
    ]),
  )
  const framework = FRAMEWORKS.find((name) => names.has(name)) ?? null
  const binary = chooseBinary(tree, manifests)
  const toolchain =
    textAt(readToml(tree, 'rust-toolchain.toml'), 'toolchain', 'channel') ??
    textAt(readToml(tree, 'rust-toolchain'), 'toolchain', 'channel') ??
    firstLine(tree, 'rust-toolchain')
  const pinned =
    toolchain !== undefined && /^\d+\.\d+/.test(toolchain)
      ? { wanted: toolchain, source: 'rust-toolchain' }
      : undefined
  // `rust-version` is a minimum, and a newer compiler accepts all older code: only a pinned toolchain is
  // taken literally.
  const version = chooseVersion('rust', [version_request, pinned, toolVersion(tree, 'rust')])
  const locked = tree.has('Cargo.lock') ? ' --locked' : ''
  const select = binary.package === undefined ? '' : ` --package ${binary.package}`
  const build = `cargo build --release${locked}${select}${binary.name === undefined ? '' : ` --bin ${binary.name}`}`
  const port = (framework === null ? undefined : own(PORTS, framework)) ?? 8000
  return {
    stack: 'rust',
    framework: framework && (own(SHORT_NAMES, framework) ?? framework),
    version: version.version,
    package_manager: 'cargo',
    install_command: null,
    build_command: build,
    start_command: '/app/bin/app',
    release_command: null,
    port,
    health_check: TCP,
    explanation: [
      ...because('stack', 'rust', 'Cargo.toml'),
      ...because('framework', framework, 'Cargo.toml'),
      ...because('version', version.version, version.source),
      ...because('build_command', build, binary.source),
      ...because('start_command', '/app/bin/app', 'the binary of the build'),
      ...because('port', String(port), 'default, set as PORT'),
    ],
    layout: (commands: Commands) => rustLayout(tree, manifests, version.version, framework, commands),
  }
}

interface Binary {
  name: string | undefined
  package: string | undefined
  source: string
}

/** The binary to run: `default-run`, the package's own, or the likeliest of a workspace's. */
function chooseBinary(tree: SourceTree, manifests: readonly string[]): Binary {
  const found = manifests.flatMap((path): (Binary & { folder: string })[] => {
    const manifest = readToml(tree, path)
    const folder = folderOf(path)
    const name = textAt(manifest, 'package', 'name')
    if (name === undefined || !/^[A-Za-z0-9_-]{1,80}$/.test(name) || excluded(tree, folder)) return []
    const bins = at(manifest, 'bin')
    const declared = (Array.isArray(bins) ? bins : [])
      .flatMap((bin) => textAt(asFields(bin), 'name') ?? [])
      .filter((bin) => /^[A-Za-z0-9_-]{1,80}$/.test(bin))
    const others = tree
      .files()
      .filter((file) => file.startsWith(joinPath(folder, 'src/bin/')))
      .map((file) => file.slice(joinPath(folder, 'src/bin/').length).replace(/(?:\/main)?\.rs$/, ''))
      .filter((bin) => /^[A-Za-z0-9_-]+$/.test(bin))
    const main = tree.has(joinPath(folder, 'src/main.rs')) && declared.length === 0 ? [name] : []
    const chosen =
      textAt(manifest, 'package', 'default-run') ??
      declared.find((bin) => bin === name) ??
      declared[0] ??
      main[0] ??
      ['main', 'server'].find((bin) => others.includes(bin)) ??
      others[0]
    return chosen === undefined || !/^[A-Za-z0-9_-]+$/.test(chosen)
      ? []
      : [
          {
            name: chosen,
            package: folder === '' && manifests.length === 1 ? undefined : name,
            source: path,
            folder,
          },
        ]
  })
  const likely = ['server', 'api', 'web', 'app', 'backend', 'main', 'bin']
  const rank = ({ folder, name }: Binary & { folder: string }) =>
    (folder === '' ? -10 : 0) +
    (likely.some((word) => name?.includes(word) === true || folder.split('/').includes(word)) ? 0 : 10) +
    folder.split('/').length
  return (
    found.sort((a, b) => rank(a) - rank(b) || compare(a.folder, b.folder))[0] ?? {
      name: undefined,
      package: undefined,
      source: 'Cargo.toml',
    }
  )
}

function excluded(tree: SourceTree, folder: string): boolean {
  const members = listAt(readToml(tree, 'Cargo.toml'), 'workspace', 'members')
  const member = members.some(
    (pattern) => pattern === folder || (pattern.endsWith('/*') && folderOf(folder) === pattern.slice(0, -2)),
  )
  return (
    (/(?:^|\/)(?:examples?|benches|tests?|xtask|tools)(?:\/|$)/.test(folder) && !member) ||
    listAt(readToml(tree, 'Cargo.toml'), 'workspace', 'exclude').includes(folder)
  )
}

function rustLayout(
  tree: SourceTree,
  manifests: readonly string[],
  version: string,
  framework: string | null,
  commands: Commands,
) {
  const lock = tree.read('Cargo.lock') ?? skim(tree, 'Cargo.toml')
  const has = (crate: string) => lock.includes(`"${crate}"`) || lock.includes(`${crate} =`)
  const image = baseImage('rust', version)
  const runs_cargo = /^(?:\S+=\S+\s+)*cargo\b/.test(commands.start ?? '')
  const single =
    manifests.length === 1 &&
    tree.has('src/main.rs') &&
    tree.has('Cargo.lock') &&
    !tree.has('build.rs') &&
    !/^\[(?:\[bin\]\]|lib\])/m.test(skim(tree, 'Cargo.toml'))
  // A program that is started from `target` by a command of the user must be in the image.
  const cached = commands.own_start && !runs_cargo
  const touched = single ? ['touch src/main.rs'] : []
  return {
    build_image: image,
    runtime_image: runs_cargo ? image : baseImage('debian'),
    caches: runs_cargo ? [] : ['/usr/local/cargo/registry', '/usr/local/cargo/git'],
    build_caches: cached ? ['/app/target'] : [],
    built_in_cache: cached,
    build_packages: [
      ...(has('prost-build') || has('tonic-build') ? ['protobuf-compiler'] : []),
      ...(has('pq-sys') ? ['libpq-dev'] : []),
      ...(has('bindgen') ? ['clang', 'libclang-dev'] : []),
      ...(has('aws-lc-sys') ? ['cmake'] : []),
    ],
    runtime_packages: [
      'ca-certificates',
      ...(has('openssl-sys') ? ['libssl3'] : []),
      ...(has('pq-sys') ? ['libpq5'] : []),
      ...(has('mysqlclient-sys') ? ['libmariadb3'] : []),
      ...(has('libsqlite3-sys') ? ['libsqlite3-0'] : []),
    ],
    build_env: {
      CARGO_TERM_COLOR: 'never',
      SQLX_OFFLINE: hasFolder(tree, '.sqlx') ? 'true' : 'false',
    },
    // A program that does nothing, with the same dependencies, is built first: its layer holds them compiled.
    manifests: single ? ['Cargo.toml', 'Cargo.lock'] : [],
    install: single
      ? (commands.install ??
        `mkdir src && echo 'fn main() {}' > src/main.rs && cargo build --release --locked && rm -rf src`)
      : commands.install,
    // Cargo tells changed sources by their time, and those of an archive may be older than the last build.
    before_build: cached ? ["find . -name '*.rs' ! -path './target/*' -exec touch {} +"] : touched,
    build: commands.build,
    after_build: runs_cargo
      ? []
      : [
          `mkdir -p bin && find target/release -maxdepth 1 -type f -perm -u+x ! -name '*.so' ! -name '*.d' -exec cp {} bin/ ';' && ${binaryCopy(commands.build)}`,
          cached
            ? 'rm -rf node_modules'
            : 'rm -rf target/release/deps target/release/build target/release/incremental target/debug node_modules',
        ],
    runtime_env: {
      ROCKET_ADDRESS: '0.0.0.0',
      ROCKET_PORT: String(commands.port),
      ...(framework === 'leptos' ? { LEPTOS_SITE_ADDR: `0.0.0.0:${commands.port}` } : {}),
      RUST_BACKTRACE: '1',
    },
    start: commands.start,
    port: commands.port,
  }
}

function binaryCopy(build: string | null): string {
  const name = / --bin ([A-Za-z0-9_-]+)/.exec(build ?? '')?.[1]
  return name === undefined
    ? 'cp "$(ls -S bin/* | head -n 1)" bin/app'
    : `cp ${shellWord(`bin/${name}`)} bin/.app && mv bin/.app bin/app`
}
