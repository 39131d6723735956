import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../plan.ts'
import { compare, filesIn, filesWithSuffix, folderOf, skim } from '../tree-queries.ts'
import { chooseVersion, toolVersion, versionFile } from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { TCP, because, type Commands, type Stack, type StackContext } from './stack.ts'

const FRAMEWORKS: readonly (readonly [string, string])[] = [
  ['gin', 'github.com/gin-gonic/gin'],
  ['echo', 'github.com/labstack/echo'],
  ['fiber', 'github.com/gofiber/fiber'],
  ['chi', 'github.com/go-chi/chi'],
  ['beego', 'github.com/beego/beego'],
  ['iris', 'github.com/kataras/iris'],
  ['buffalo', 'github.com/gobuffalo/buffalo'],
  ['pocketbase', 'github.com/pocketbase/pocketbase'],
  ['martini', 'github.com/go-martini/martini'],
  ['revel', 'github.com/revel/revel'],
  ['goravel', 'github.com/goravel/framework'],
  ['huma', 'github.com/danielgtaylor/huma'],
  ['gorilla', 'github.com/gorilla/mux'],
  ['httprouter', 'github.com/julienschmidt/httprouter'],
]
/** Modules that are bindings of C libraries. */
const USES_C =
  /github\.com\/(?:mattn\/go-sqlite3|confluentinc\/confluent-kafka-go|h2non\/bimg|davidbyttow\/govips)|gorm\.io\/driver\/sqlite\b/

/**
 * Go: one binary of the main package; the source folder goes along without its Go files, for templates and
 * assets.
 */
export const go: Stack = {
  name: 'go',
  help: 'A go.mod or go.work, or a main.go.',
  looked_for: ['go.mod', 'go.work', 'main.go'],
  // Hugo keeps its modules in a go.mod too: without a Go file it is not an app.
  detect: (tree) =>
    (['go.mod', 'go.work', 'Gopkg.toml', 'glide.yaml'].some((path) => tree.has(path)) &&
      tree.files().some((path) => path.endsWith('.go'))) ||
    filesIn(tree).some((path) => path.endsWith('.go') && isMain(tree, path)),
  plan: planGo,
}

function planGo({ tree, declared, version_request }: StackContext) {
  const module_file = tree.read('go.mod') ?? ''
  const manifest = module_file === '' ? 'go.work' : 'go.mod'
  const work_file = tree.read('go.work') ?? ''
  const mains = mainPackages(tree)
  const main = mains.find((folder) => starts(declared.start_command?.value, folder)) ?? mains[0] ?? ''
  const others = [
    ...Object.values(declared.processes?.value ?? {}),
    declared.release_command?.value,
    ...(declared.cron_jobs?.value ?? []).map(({ command }) => command),
  ]
  const beside = mains.filter((folder) => folder !== main && others.some((line) => starts(line, folder)))
  const requested = /^(?:toolchain[ \t]+go|go[ \t]+)(\d+\.\d+(?:\.\d+)?)/m.exec(
    `${module_file}\n${work_file}`,
  )?.[1]
  const toolchain = /^toolchain[ \t]+go(\d+\.\d+(?:\.\d+)?)/m.exec(module_file)?.[1]
  const version = chooseVersion('go', [
    version_request,
    versionFile(tree, '.go-version'),
    toolVersion(tree, 'golang', 'go'),
    requested === undefined ? undefined : { wanted: toolchain ?? requested, source: manifest },
  ])
  const modules = `${module_file}\n${filesWithSuffix(tree, ['go.mod'], 3)
    .map((path) => tree.read(path) ?? '')
    .join('\n')}`
  const framework = FRAMEWORKS.find(([, path]) => modules.includes(path))?.[0] ?? null
  const build = [buildLine('app', main), ...beside.map((folder) => buildLine(nameOf(folder), folder))].join(
    ' && ',
  )
  const port = portOf(tree, main)
  const has_modules = tree.has('go.mod') || tree.has('go.work')
  const vendored = tree.has('vendor/modules.txt')
  const install = has_modules && !vendored ? 'go mod download' : null
  return {
    stack: 'go',
    framework,
    version: version.version,
    package_manager: 'go',
    install_command: install,
    build_command: build,
    start_command: '/app/bin/app',
    release_command: null,
    port: port ?? 8080,
    health_check: TCP,
    explanation: [
      ...because('stack', 'go', has_modules ? manifest : 'Go files without a go.mod'),
      ...because('framework', framework, 'go.mod'),
      ...because('version', version.version, version.source),
      ...because(
        'build_command',
        build,
        main === '' ? 'package main in the root' : `package main in ${main}`,
      ),
      ...because('start_command', '/app/bin/app', 'the binary of the build'),
      ...because('port', String(port ?? 8080), port === undefined ? 'default, set as PORT' : 'source code'),
    ],
    layout: (commands: Commands) =>
      goLayout(tree, main, version.version, has_modules && !vendored, modules, commands),
  }
}

function goLayout(
  tree: SourceTree,
  main: string,
  version: string,
  downloads: boolean,
  modules: string,
  commands: Commands,
) {
  const c = USES_C.test(modules)
  const manifests = tree
    .files()
    .filter((path) => /(?:^|\/)(?:go\.(?:mod|sum|work|work\.sum))$/.test(path) && !path.startsWith('vendor/'))
  const image = baseImage('go', version)
  const runs_go = /^(?:[^\s=]+=\S*\s+)*go\s/.test(commands.start ?? '')
  const name = binaryName(tree, main)
  return {
    build_image: image,
    runtime_image: runs_go ? image : baseImage('debian'),
    build_env: { CGO_ENABLED: c ? '1' : '0', GOTOOLCHAIN: 'auto', GOFLAGS: '-buildvcs=false' },
    // A program that is compiled when it starts takes its modules from the image.
    caches: runs_go ? [] : ['/go/pkg/mod'],
    manifests: downloads ? manifests : [],
    install: commands.install,
    node_assets: nodeAssets(tree),
    before_build: tree.has('go.mod') || tree.has('go.work') ? [] : ['go mod init app && go mod tidy'],
    build: commands.build,
    // Buildpacks put a binary named after its package into `bin`, which the Procfiles of the field start.
    after_build: runs_go
      ? []
      : [
          `if [ -f bin/app ] && [ ! -e bin/${name} ]; then ln -s app bin/${name}; fi`,
          "rm -rf vendor node_modules && find . -name '*.go' -type f -delete",
        ],
    runtime_setup: runs_go ? [] : ['mkdir -p /etc/ssl/certs /usr/share/zoneinfo'],
    keep: [
      ...(runs_go ? [] : [{ from: '/etc/ssl/certs/ca-certificates.crt', to: '/etc/ssl/certs/' }]),
      { from: '/app', to: '/app' },
    ],
    runtime_env: { GIN_MODE: 'release' },
    start: commands.start,
    port: commands.port,
  }
}

const buildLine = (name: string, folder: string): string =>
  `go build -trimpath -ldflags=-s -o /app/bin/${name} ${folder === '' ? '.' : shellWord(`./${folder}`)}`

const nameOf = (folder: string): string => folder.split('/').at(-1)!

/** Whether a command starts the program of this folder, by the name that it has in `bin`. */
function starts(command: string | undefined, folder: string): boolean {
  const name = nameOf(folder)
  const program = command?.trim().split(/\s+/, 1)[0]
  return (
    /^[A-Za-z0-9][\w.-]*$/.test(name) &&
    program !== undefined &&
    ['bin/', './bin/', '/app/bin/', './', ''].some((path) => program === path + name)
  )
}

/** Folders of main packages: the root, then `cmd/<name>` with the likeliest name, then any. */
function mainPackages(tree: SourceTree): string[] {
  const mains = filesWithSuffix(tree, ['.go'], 4)
    .filter(
      (path) =>
        !/(?:^|\/)(?:vendor|testdata|examples?|tests?|tools|scripts|internal\/tools)\//.test(path) &&
        !path.endsWith('_test.go') &&
        isMain(tree, path),
    )
    .map(folderOf)
  const folders = [...new Set(mains)]
  const module_name = /^module[ \t]+(\S{1,200})/m
    .exec(tree.read('go.mod') ?? '')?.[1]
    ?.replace(/\/v\d+$/, '')
    .split('/')
    .at(-1)
  const likely = [module_name, 'server', 'web', 'api', 'app', 'main', 'http', 'service', 'backend']
  const rank = (folder: string) => {
    if (folder === '') return -100
    const place = likely.indexOf(folder.split('/').at(-1))
    const by_name = place < 0 ? 50 : place
    return (
      (folder === 'cmd' ? -2 : by_name) +
      (/^cmd(?:\/|$)/.test(folder) ? 0 : 20) +
      folder.split('/').length * 5
    )
  }
  return folders.sort((a, b) => rank(a) - rank(b) || compare(a, b))
}

function isMain(tree: SourceTree, path: string): boolean {
  const text = skim(tree, path)
  return (
    /^package main\b/m.test(text) &&
    /^func main\(\)/m.test(text) &&
    !/^\/\/go:build (?:ignore|tools)/m.test(text)
  )
}

function binaryName(tree: SourceTree, main: string): string {
  const module_name = /^module[ \t]+(\S{1,200})/m
    .exec(tree.read('go.mod') ?? '')?.[1]
    ?.replace(/\/v\d+$/, '')
    .split('/')
    .at(-1)
  const name = main === '' ? module_name : main.split('/').at(-1)
  return name !== undefined && /^[A-Za-z0-9._-]+$/.test(name) && name !== '..' && name !== '.' ? name : 'web'
}

function portOf(tree: SourceTree, main: string): number | undefined {
  const texts = tree
    .files()
    .filter((path) => path.endsWith('.go') && (folderOf(path) === main || folderOf(path) === ''))
    .slice(0, 20)
    .map((path) => skim(tree, path))
  const fallback = texts
    .map(
      (text) =>
        /(?:port|addr\w*)\s{0,5}:?=\s{0,5}"(?:[\w.]*:)?(\d{2,5})"/i.exec(text)?.[1] ??
        /(?:ListenAndServe\w*|\.Run|\.Start|\.Listen)\(\s{0,5}"[\w.]*:(\d{2,5})"/.exec(text)?.[1] ??
        /Addr:\s{0,9}"[\w.]*:(\d{2,5})"/.exec(text)?.[1],
    )
    .find((value) => value !== undefined)
  return fallback === undefined || Number(fallback) > 65_535 ? undefined : Number(fallback)
}
