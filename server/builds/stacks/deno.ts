import { own } from '#server/kernel/own'
import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { asFields, at, readJson, textAt, type Fields } from '../text-formats.ts'
import { toolVersion, versionFile } from '../versions.ts'
import { TCP, HTTP_ROOT, because, nameIn, type Commands, type Stack, type StackContext } from './stack.ts'

const ENTRIES = [
  'main',
  'server',
  'mod',
  'index',
  'app',
  'src/main',
  'src/server',
  'src/index',
  'src/mod',
  'src/app',
].flatMap((base) => ['.ts', '.tsx', '.js', '.mjs'].map((extension) => base + extension))
const PORT = 8000
/** Names of tasks that serve, beside `start`. */
const SERVING = ['serve', 'prod', 'production']

/** Deno, and Fresh on it. The runtime comes from npm, like Bun's, so that one image serves all three. */
export const deno: Stack = {
  name: 'deno',
  help: 'A deno.json, deno.lock or a program that imports from https, jsr or Deno itself.',
  looked_for: ['deno.json', 'deno.jsonc', 'deno.lock'],
  detect: runsOnDeno,
  plan: planDeno,
}

function runsOnDeno(tree: SourceTree): boolean {
  const marked = ['deno.json', 'deno.jsonc', 'deno.lock', 'fresh.config.ts', 'fresh.gen.ts'].some((path) =>
    tree.has(path),
  )
  if (tree.has('package.json')) {
    // Node projects may carry a deno.json for tools; a Deno project with a package.json starts with `deno`.
    const manifest = readJson(tree, 'package.json')
    const start = textAt(manifest, 'scripts', 'start') ?? textAt(manifest, 'scripts', 'dev') ?? ''
    return (
      /\bdeno\b/.test(start) || (marked && start === '' && textAt(manifest, 'scripts', 'build') === undefined)
    )
  }
  return (
    marked ||
    [...ENTRIES, ...filesIn(tree).filter((path) => /\.[jt]sx?$/.test(path))].some((path) =>
      importsDeno(skim(tree, path)),
    )
  )
}

function importsDeno(text: string): boolean {
  return /from\s{1,5}['"](?:https:\/\/deno\.land|jsr:|npm:|https:\/\/esm\.sh)|\bDeno\.(?:serve|env|listen|readTextFile|args)\b/.test(
    text,
  )
}

/** The command of a task in `deno.json`; undefined without that task. */
type Task = (name: string) => string | null | undefined

/** @param is_built Whether the build of Fresh leaves a server. */
function startLine(task: Task, entry: string | undefined, is_built: boolean): string | null {
  if (task('start') !== undefined && !/--watch/.test(task('start')!)) return 'deno task start'
  if (is_built) return 'deno serve -A --port $PORT _fresh/server.js'
  const named = SERVING.find((name) => task(name) !== undefined && !/--watch/.test(task(name)!))
  if (named !== undefined) return `deno task ${named}`
  if (entry !== undefined) return `deno run --allow-all ${entry}`
  const name = ['preview', 'dev'].find((each) => task(each) !== undefined)
  return name === undefined ? null : `deno task ${name}`
}

/** The program that a task which serves runs, where it lies elsewhere than programs usually do. */
function entryOfTasks(tree: SourceTree, task: Task): string | undefined {
  const commands = ['start', ...SERVING, 'dev'].map((name) => task(name) ?? '')
  const files = commands.flatMap((command) => command.match(/(?<=\s)[\w./-]{1,120}\.[jt]sx?(?=\s|$)/g) ?? [])
  return files.map((file) => file.replace(/^\.\//, '')).find((file) => tree.has(file))
}

function planDeno({ tree, version_request }: StackContext) {
  const config: Fields = readJson(tree, 'deno.json') ?? readJson(tree, 'deno.jsonc') ?? {}
  const imports = JSON.stringify(at(config, 'imports') ?? {}) + skim(tree, 'import_map.json')
  const fresh = /fresh/.test(imports) || tree.has('fresh.gen.ts') || tree.has('fresh.config.ts')
  const framework = fresh ? 'fresh' : nameIn(imports, { oak: /\boak\b/, hono: /\bhono\b/, lume: /lume/ })
  const requested =
    version_request ?? versionFile(tree, '.dvmrc', '.deno-version') ?? toolVersion(tree, 'deno')
  const version = /^v?(\d+(?:\.\d+){0,2})$/.exec(requested?.wanted ?? '')?.[1] ?? '2'
  const tasks = asFields(at(config, 'tasks')) ?? {}
  const task: Task = (name) => {
    const given = own(tasks, name)
    return given === undefined || typeof given === 'string' ? given : textAt(given, 'command')
  }
  const entry =
    firstOf(tree, ENTRIES) ??
    entryOfTasks(tree, task) ??
    filesIn(tree).find((path) => /\.[jt]sx?$/.test(path) && importsDeno(skim(tree, path)))
  const build = task('build') === undefined ? null : 'deno task build'
  const lume = framework === 'lume'
  const bundled =
    !fresh &&
    task('start') === undefined &&
    build !== null &&
    tree.has('index.html') &&
    ['ts', 'js', 'mjs'].some((ending) => tree.has(`vite.config.${ending}`))
  const page = bundled ? 'dist' : undefined
  const site = lume ? '_site' : page
  const is_built = fresh && tree.has('main.ts') && build !== null && !tree.has('fresh.gen.ts')
  const start = site === undefined ? startLine(task, entry, is_built) : null
  const cache = entry === undefined ? null : `deno cache ${entry}`
  const port =
    site !== undefined
      ? 8080
      : Number(
          /(?:port\s{0,5}:\s{0,5}|listen\(\s{0,5}\{\s{0,5}port\s{0,5}:\s{0,5})(\d{2,5})/.exec(
            skim(tree, entry),
          )?.[1],
        ) || PORT
  return {
    stack: 'deno',
    framework,
    version,
    package_manager: 'deno',
    install_command: cache,
    build_command: lume ? (build ?? 'deno task build') : build,
    start_command: start,
    release_command: null,
    port,
    health_check: fresh || site !== undefined ? HTTP_ROOT : TCP,
    explanation: [
      ...because(
        'stack',
        'deno',
        firstOf(tree, ['deno.json', 'deno.jsonc', 'deno.lock']) ?? entry ?? 'source files',
      ),
      ...because('framework', framework, 'imports of deno.json'),
      ...because('version', version, requested?.source ?? 'default'),
      ...because(
        'start_command',
        start,
        start?.includes('task') === true ? 'tasks in deno.json' : (entry ?? ''),
      ),
      ...because('static_folder', site, 'the build leaves files, which nginx serves'),
      ...because('port', String(port), 'default, set as PORT'),
    ],
    layout(commands: Commands) {
      const image = baseImage('node')
      const setup = [`npm install --global deno@${version}`]
      const environment = { DENO_DIR: '/opt/deno', DENO_NO_UPDATE_CHECK: '1' }
      return {
        build_image: image,
        runtime_image: image,
        build_setup: setup,
        runtime_setup: site !== undefined ? [] : setup,
        build_env: environment,
        runtime_env: environment,
        manifests: [],
        install: commands.install,
        before_build: ['mkdir -p /opt/deno'],
        build: commands.build,
        keep: [
          { from: '/opt/deno', to: '/opt/deno' },
          { from: '/app', to: '/app' },
        ],
        start: commands.start,
        static_site:
          site !== undefined && commands.own_start
            ? { from: `/app/${site}`, fallback: lume ? ('pages' as const) : ('spa' as const) }
            : undefined,
        port: commands.port,
      }
    },
  }
}
