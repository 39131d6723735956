import type { SourceTree } from '../../plan.ts'
import { filesNamed, folderOf } from '../../tree-queries.ts'
import { at, readJson, textAt } from '../../text-formats.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import type { NodeApp } from './manifest.ts'

interface Project {
  name: string
  output: string
  kind: 'server' | 'static' | 'next'
}

const WORD = /^[@\w./-]{1,120}$/
const FRONT_END = /^(?:web|www|site|frontend|front|client|app|shop|dashboard)$/

/**
 * A monorepo whose apps are described by `project.json` alone, with one package.json for all: the app is
 * built by its name, and started from where Nx leaves it. The root's own scripts start the development
 * server.
 */
export function nxPlan(app: NodeApp): FrameworkPlan | undefined {
  const start = app.manifest.scripts.get('start')
  if (
    app.manifest.folder !== '' ||
    !app.root.has('nx.json') ||
    (start !== undefined && !/\bnx\b/.test(start))
  )
    return undefined
  const projects = filesNamed(app.root, 'project.json', 3)
    .map((path) => projectOf(app.root, path))
    .filter((project) => project !== undefined)
  const wanted =
    textAt(readJson(app.root, 'nx.json'), 'defaultProject') ??
    /\bnx (?:serve|start|run) ([\w-]+)/.exec(start ?? '')?.[1]
  const project =
    projects.find(({ name }) => name === wanted) ??
    projects.find(({ name }) => FRONT_END.test(name)) ??
    projects[0]
  if (project === undefined) return undefined
  const build = { build: `nx build ${project.name}`, own_build: true }
  if (project.kind === 'static') return { kind: 'static', ...build, output: project.output, fallback: 'spa' }
  return {
    kind: 'server',
    ...build,
    start: project.kind === 'next' ? `next start ${project.output}` : `node ${project.output}/main.js`,
    own_start: true,
  }
}

/**
 * An application with a build target; nothing for libraries, end-to-end tests and names that do not belong
 * into a command.
 */
function projectOf(tree: SourceTree, path: string): Project | undefined {
  const fields = readJson(tree, path)
  const build = at(fields, 'targets', 'build')
  const name = textAt(fields, 'name') ?? folderOf(path).split('/').at(-1)!
  if (
    textAt(fields, 'projectType') !== 'application' ||
    build === undefined ||
    /-e2e$/.test(name) ||
    !WORD.test(name)
  )
    return undefined
  const executor = textAt(build, 'executor') ?? textAt(build, 'builder') ?? ''
  const output =
    textAt(build, 'options', 'outputPath') ??
    textAt(build, 'options', 'outputPath', 'base') ??
    `dist/${folderOf(path)}`
  if (!WORD.test(output) || output.includes('..')) return undefined
  if (/[:/]next:build$/.test(executor)) return { name, output, kind: 'next' }
  const serves =
    /@(?:nx|nrwl)\/(?:js|node):/.test(textAt(fields, 'targets', 'serve', 'executor') ?? '') ||
    /\/(?:esbuild|node):/.test(executor) ||
    textAt(build, 'options', 'target') === 'node'
  if (serves) return { name, output, kind: 'server' }
  return {
    name,
    output: /(?:build-angular|@angular\/build):application$/.test(executor) ? `${output}/browser` : output,
    kind: 'static',
  }
}
