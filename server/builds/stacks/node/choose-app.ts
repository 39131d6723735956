import type { SourceTree } from '../../plan.ts'
import { frameworkOf } from './frameworks/index.ts'
import type { NodeFramework } from './frameworks/framework.ts'
import { readManifest, type Manifest, type NodeApp } from './manifest.ts'
import { choosePackageManager, execLine, scriptLine, type PackageManager } from './package-manager.ts'
import { entryFile } from './start-command.ts'
import { chooseWorkspace, workspacePackages } from './workspaces.ts'

/** The package that is deployed, and the repository around it. */
export interface ChosenApp {
  root: Manifest
  packages: readonly Manifest[]
  manager: PackageManager
  app: NodeApp
  framework: NodeFramework | undefined
}

const EMPTY: Manifest = {
  folder: '',
  file: 'package.json',
  name: undefined,
  main: undefined,
  module: false,
  scripts: new Map(),
  dependencies: new Map(),
  production_dependencies: new Set(),
  workspaces: [],
  fields: {},
}

/** Reads the manifests and, in a monorepo whose root is no app, picks the package to deploy. */
export function chooseApp(tree: SourceTree): ChosenApp {
  const root = readManifest(tree) ?? EMPTY
  const packages = workspacePackages(tree, root)
  const members = root.workspaces.length > 0 ? packages : []
  const manager = choosePackageManager(tree, root, members)
  const appOf = (manifest: Manifest): NodeApp => ({
    root: tree,
    tree: tree.sub(manifest.folder),
    manifest,
    exec: (command) => execLine(manager, command),
    script: (name) => scriptLine(manager, name),
  })
  const root_app = appOf(root)
  const chosen =
    packages.length === 0 || rootIsApp(root_app)
      ? root
      : (chooseWorkspace(root, packages, (candidate) => canRun(appOf(candidate))) ?? root)
  const target = isLeftToNx(tree, appOf(chosen)) ? root : chosen
  const app = appOf(target)
  return { root, packages, manager, app, framework: frameworkOf(app) }
}

/** A package of an Nx workspace whose targets are inferred: it names neither scripts nor tools itself. */
function isLeftToNx(tree: SourceTree, app: NodeApp): boolean {
  const { scripts } = app.manifest
  return (
    tree.has('nx.json') && !scripts.has('start') && !scripts.has('build') && frameworkOf(app) === undefined
  )
}

const ORCHESTRATES =
  /\b(?:turbo|nx|lerna|concurrently|npm-run-all|run-p|rush|wsrun|moon)\b|--workspace|--filter|\bworkspaces?\b|\s-F\s|\s-w\s|--prefix|--cwd/

/**
 * A root with a program of its own is the app, even in a monorepo; one whose scripts only call the packages
 * is not.
 */
function rootIsApp(app: NodeApp): boolean {
  const start = app.manifest.scripts.get('start')
  if (start !== undefined) return !ORCHESTRATES.test(start)
  const build = app.manifest.scripts.get('build') ?? ''
  return (
    frameworkOf(app) !== undefined &&
    !ORCHESTRATES.test(build) &&
    app.manifest.production_dependencies.size > 0
  )
}

function canRun(app: NodeApp): boolean {
  const framework = frameworkOf(app)
  if (framework !== undefined) return !isLibrary(app, framework.name)
  return (
    app.manifest.scripts.has('start') ||
    (entryFile(app.tree) !== undefined &&
      app.manifest.name !== undefined &&
      /^(?:apps|services)\//.test(app.manifest.folder))
  )
}

/** A component library has Vite or Storybook without a page of its own. */
function isLibrary(app: NodeApp, framework: string): boolean {
  return (
    ['vite', 'storybook', 'rsbuild', 'parcel'].includes(framework) &&
    !app.tree.has('index.html') &&
    !app.tree.has('src/index.html')
  )
}
