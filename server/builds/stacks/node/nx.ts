import type { SourceTree } from '../../plan.ts'
import { filesNamed, folderOf, joinPath } from '../../tree-queries.ts'
import { asFields, at, readJson, textAt } from '../../text-formats.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { configText, type NodeApp } from './manifest.ts'

interface Project {
  name: string
  output: string
  kind: 'server' | 'static' | 'next'
  /** What starts a server, where it is not `main.js` in the output. */
  start?: string
  /** Target that builds it, where it is not `build`. */
  target?: string
}

const WORD = /^[@\w./-]{1,120}$/
const TARGET = /^[\w-]{1,60}$/
const FRONT_END = /^(?:web|www|site|website|frontend|front|client|app|shop|store|portal|dashboard)$/

/**
 * A monorepo whose apps are described by `project.json`, by `nx` in a package.json, or by the configuration of
 * their tools alone, from which Nx infers the targets. The app is built by its name, and started from where Nx
 * leaves it. The root's own scripts start the development server.
 */
export function nxPlan(app: NodeApp): FrameworkPlan | undefined {
  const start = app.manifest.scripts.get('start')
  if (
    app.manifest.folder !== '' ||
    !app.root.has('nx.json') ||
    (start !== undefined && !/\bnx\b/.test(start))
  )
    return undefined
  const projects = projectFolders(app.root)
    .map((folder) => projectOf(app.root, folder))
    .filter((project) => project !== undefined)
  const requested =
    textAt(readJson(app.root, 'nx.json'), 'defaultProject') ??
    /\bnx (?:serve|start|run) ([\w-]+)/.exec(start ?? '')?.[1]
  // A name with a scope, as a package.json has it, means what its last part does.
  const project =
    projects.find(({ name }) => name === requested) ??
    projects.find(({ name }) => FRONT_END.test(name.split('/').at(-1)!)) ??
    projects.find(({ kind }) => kind !== 'server') ??
    projects[0]
  if (project === undefined) return undefined
  const { name, target = 'build' } = project
  const line = target === 'build' ? `nx build ${name}` : `nx run ${name}:${target}`
  const build = { build: line, own_build: true }
  if (project.kind === 'static') return { kind: 'static', ...build, output: project.output, fallback: 'spa' }
  return {
    kind: 'server',
    ...build,
    start:
      project.start ??
      (project.kind === 'next' ? `next start ${project.output}` : `node ${project.output}/main.js`),
    own_start: true,
  }
}

const MAX_PROJECTS = 100

/** Folders that Nx takes for projects: each has a manifest of its own, or stands in the list that Nx had once. */
function projectFolders(tree: SourceTree): string[] {
  const manifests = [...filesNamed(tree, 'project.json', 3), ...filesNamed(tree, 'package.json', 3)]
  const folders = [...manifests.map(folderOf), ...listedProjects(tree).keys()]
  return [...new Set(folders)].filter((folder) => folder !== '').slice(0, MAX_PROJECTS)
}

/** Projects of the `workspace.json` that Nx read before it read a file of each, by their folders. */
function listedProjects(tree: SourceTree): Map<string, { name: string; project: unknown }> {
  const list = asFields(at(readJson(tree, 'workspace.json'), 'projects')) ?? {}
  return new Map(
    Object.entries(list).flatMap(([name, project]) => {
      const folder = typeof project === 'string' ? project : textAt(project, 'root')
      return folder === undefined ? [] : [[joinPath(folder), { name, project }] as const]
    }),
  )
}

/**
 * An application with a build target; nothing for libraries, end-to-end tests and names that do not belong
 * into a command.
 */
function projectOf(tree: SourceTree, folder: string): Project | undefined {
  const listed = listedProjects(tree).get(folder)
  const project = readJson(tree, joinPath(folder, 'project.json')) ?? listed?.project
  const manifest = readJson(tree, joinPath(folder, 'package.json'))
  const name =
    textAt(project, 'name') ??
    listed?.name ??
    textAt(manifest, 'nx', 'name') ??
    textAt(manifest, 'name') ??
    folder.split('/').at(-1)!
  if (/-e2e$/.test(name) || !WORD.test(name) || !WORD.test(folder)) return undefined
  const kind = textAt(project, 'projectType') ?? textAt(manifest, 'nx', 'projectType')
  if (kind === 'library' || (kind === undefined && /^(?:libs|packages|tools|e2e)\//.test(folder)))
    return undefined
  const targets = at(project, 'targets') ?? at(project, 'architect') ?? at(manifest, 'nx', 'targets')
  const build = at(targets, 'build')
  const executor = textAt(build, 'executor') ?? textAt(build, 'builder')
  const written = executor === undefined ? undefined : declaredProject({ name, folder, targets, executor })
  if (written !== undefined) return written
  const inferred = inferredProject(tree, name, folder)
  return inferred && { ...inferred, target: inferredTarget(tree, folder) }
}

/** Tools from which Nx infers a target that builds, by their configuration. */
const TOOLS = ['next', 'nuxt', 'react-router', 'astro', 'rsbuild', 'vite', 'webpack', 'rspack']

/** The name of that target, where the options of the tool's plugin give it another one than `build`. */
function inferredTarget(tree: SourceTree, folder: string): string | undefined {
  const tool = TOOLS.find((name) => configText(tree.sub(folder), `${name}.config`) !== '')
  const plugins = at(readJson(tree, 'nx.json'), 'plugins')
  const plugin = (Array.isArray(plugins) ? plugins : []).find(
    (one) => textAt(one, 'plugin')?.includes(tool === 'react-router' ? 'router' : `/${tool}`) === true,
  )
  const named = textAt(plugin, 'options', 'buildTargetName')
  return named !== undefined && TARGET.test(named) ? named : undefined
}

/** What a target says that names its executor. */
function declaredProject({
  name,
  folder,
  targets,
  executor,
}: {
  name: string
  folder: string
  targets: unknown
  executor: string
}): Project | undefined {
  const build = at(targets, 'build')
  const output =
    textAt(build, 'options', 'outputPath') ??
    textAt(build, 'options', 'outputPath', 'base') ??
    `dist/${folder}`
  if (executor === 'nx:run-commands' || !WORD.test(output) || output.includes('..')) return undefined
  if (/[:/]next:build$/.test(executor)) return { name, output, kind: 'next' }
  const serves =
    /@(?:nx|nrwl)\/(?:js|node):/.test(textAt(targets, 'serve', 'executor') ?? '') ||
    /\/(?:esbuild|node):/.test(executor) ||
    textAt(build, 'options', 'target') === 'node'
  if (serves) return { name, output, kind: 'server', start: `node ${output}/${programOf(build, folder)}` }
  return {
    name,
    output: /(?:build-angular|@angular\/build):application$/.test(executor) ? `${output}/browser` : output,
    kind: 'static',
  }
}

/** The file that an executor for servers writes: a bundle by the name it is told, a compiler's where its source is. */
function programOf(build: unknown, folder: string): string {
  const executor = textAt(build, 'executor') ?? ''
  const main = textAt(build, 'options', 'main') ?? `${folder}/src/main.ts`
  const named = textAt(build, 'options', 'outputFileName')
  const file =
    named ??
    `${main
      .split('/')
      .at(-1)!
      .replace(/\.[cm]?tsx?$/, '')}.js`
  const inside = main.startsWith(`${folder}/`) ? main.slice(folder.length + 1) : main
  const compiled = /:(?:tsc|swc|package)$/.test(executor) ? joinPath(folderOf(inside), file) : file
  // Webpack calls it `main` whatever its source is called.
  const path = /:webpack$/.test(executor) && named === undefined ? 'main.js' : compiled
  return WORD.test(path) && !path.includes('..') ? path : 'main.js'
}

const PATH = /['"`](?:\{projectRoot\}\/)?((?:\.{1,2}\/)*[\w./-]{1,100})['"`]/.source

/** Tools that leave pages, by their configuration, and the key in it that names the folder. */
const PAGES: readonly { config: string; key: string }[] = [
  { config: 'astro.config', key: 'outDir' },
  { config: 'rsbuild.config', key: 'root' },
  { config: 'vite.config', key: 'outDir' },
]

/** What Nx's plugins make of the configuration of a tool: its own build, in the folder of the app. */
function inferredProject(tree: SourceTree, name: string, folder: string): Project | undefined {
  const inside = tree.sub(folder)
  const at_root = (written: string | undefined, otherwise: string) => {
    const path = joinPath(folder, written ?? otherwise)
    return path.startsWith('..') || !WORD.test(path) ? joinPath(folder, otherwise) : path
  }
  if (configText(inside, 'next.config') !== '') return { name, output: folder, kind: 'next' }
  if (configText(inside, 'nuxt.config') !== '')
    return { name, output: folder, kind: 'server', start: `node ${folder}/.output/server/index.mjs` }
  if (configText(inside, 'react-router.config') !== '')
    return {
      name,
      output: folder,
      kind: 'server',
      start: `react-router-serve ./${folder}/build/server/index.js`,
    }
  for (const { config, key } of PAGES) {
    const text = configText(inside, config)
    // A library is no app.
    if (text === '' || /\blib\s{0,9}:\s{0,9}[[{]/.test(text)) continue
    const written = new RegExp(`${key}['"]?\\s{0,9}:\\s{0,9}${PATH}`).exec(text)?.[1]
    const output = at_root(written, 'dist')
    const entry = /\bssr\s{0,9}:\s{0,9}['"`](?:[\w./-]{0,100}\/)?([\w-]{1,60})\.[cm]?[jt]sx?['"`]/.exec(
      text,
    )?.[1]
    if (config === 'vite.config' && entry !== undefined)
      return { name, output, kind: 'server', start: `node ${output}/${entry}.js` }
    return { name, output, kind: 'static' }
  }
  const bundler = configText(inside, 'webpack.config') || configText(inside, 'rspack.config')
  if (bundler === '') return undefined
  const written =
    new RegExp(`path\\s{0,9}:\\s{0,9}[\\w.]{1,20}\\(\\s{0,9}__dirname\\s{0,9},\\s{0,9}${PATH}`).exec(
      bundler,
    )?.[1] ?? new RegExp(`outputPath\\s{0,9}:\\s{0,9}${PATH}`).exec(bundler)?.[1]
  const serves = /target\s{0,9}:\s{0,9}['"`](?:async-)?node/.test(bundler)
  return { name, output: at_root(written, 'dist'), kind: serves ? 'server' : 'static' }
}
