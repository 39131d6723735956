import type { SourceTree } from '../../plan.ts'
import { filesIn, filesNamed, joinPath } from '../../tree-queries.ts'
import { asFields, at, keysAt, listAt, readJson, readToml, readYaml, textAt } from '../../text-formats.ts'

/** What the manifests of a Python project say. */
export interface PythonProject {
  /** Names of required packages, in lower case with dashes, extras as `name[extra]` beside the name. */
  dependencies: ReadonlySet<string>
  pyproject: Record<string, unknown> | undefined
  /** The requirements file that is installed. */
  requirements: string | undefined
}

const REQUIREMENTS = [
  'requirements.txt',
  'requirements/production.txt',
  'requirements/prod.txt',
  'requirements/base.txt',
  'requirements/requirements.txt',
  'requirement.txt',
  'requirements-prod.txt',
  'requirements.prod.txt',
]

/** Reads every manifest that a Python project may have; together they say what it depends on. */
export function readPythonProject(tree: SourceTree): PythonProject {
  const pyproject = readToml(tree, 'pyproject.toml')
  const pipfile = readToml(tree, 'Pipfile')
  const requirements = REQUIREMENTS.find((path) => tree.has(path))
  const names = new Set<string>()
  const add = (requirement: string) => addRequirement(names, requirement)
  for (const path of tree
    .files()
    .filter((file) => /^(?:requirements?(?:\/|[.-])?[A-Za-z0-9_.-]*\.(?:txt|in))$/.test(file))) {
    for (const line of (tree.read(path) ?? '').split('\n').slice(0, 2000))
      if (!/^\s*[-#]/.test(line)) add(line)
  }
  addPyproject(names, pyproject)
  addTable(names, at(pipfile, 'packages'))
  addConda(names, readYaml(tree, 'environment.yml') ?? readYaml(tree, 'environment.yaml'))
  const setup = `${tree.read('setup.py') ?? ''}\n${tree.read('setup.cfg') ?? ''}`.slice(0, 50_000)
  const required = /install_requires\s{0,9}=\s{0,9}\[([^\]]{0,5000})\]/.exec(setup)?.[1] ?? ''
  for (const quoted of required.matchAll(/['"]([A-Za-z][\w.-]{1,60}(?:\[[a-z,]+\])?)/g)) add(quoted[1]!)
  for (const quoted of setup.matchAll(
    /^[ \t]*['"]?([A-Za-z][A-Za-z0-9._-]{1,60})(?:\[[a-z,]+\])?[ ]*(?:[<>=~!][^'"\n]{0,60})?['"]?,?[ \t]*$/gm,
  ))
    add(quoted[1]!)
  return { dependencies: names, pyproject, requirements }
}

/** What a pyproject.toml names, in each of the ways to do so. */
function addPyproject(names: Set<string>, pyproject: Record<string, unknown> | undefined): void {
  const add = (requirement: string) => addRequirement(names, requirement)
  listAt(pyproject, 'project', 'dependencies').forEach(add)
  for (const key of keysAt(pyproject, 'project', 'optional-dependencies'))
    listAt(pyproject, 'project', 'optional-dependencies', key).forEach(add)
  for (const key of keysAt(pyproject, 'dependency-groups'))
    listAt(pyproject, 'dependency-groups', key).forEach(add)
  addTable(names, at(pyproject, 'tool', 'poetry', 'dependencies'))
  for (const group of keysAt(pyproject, 'tool', 'poetry', 'group'))
    addTable(names, at(pyproject, 'tool', 'poetry', 'group', group, 'dependencies'))
}

/** Packages of conda, and those of pip that stand as a list among them. */
function addConda(names: Set<string>, environment: unknown): void {
  const list = at(environment, 'dependencies')
  for (const item of Array.isArray(list) ? list.slice(0, 2000) : []) {
    if (typeof item === 'string') addRequirement(names, item.replace(/^[\w-]+::/, ''))
    else listAt(item, 'pip').forEach((requirement) => addRequirement(names, requirement))
  }
}

function addTable(names: Set<string>, table: unknown): void {
  for (const [name, value] of Object.entries(asFields(table) ?? {})) {
    addRequirement(names, name)
    for (const extra of listAt(value, 'extras')) addRequirement(names, `${name}[${extra}]`)
  }
}

function addRequirement(names: Set<string>, requirement: string): void {
  const match = /^\s{0,20}([A-Za-z0-9][A-Za-z0-9._-]{0,80})\s{0,5}(\[[A-Za-z0-9_,\s-]{1,80}\])?/.exec(
    requirement,
  )
  if (match === null) return
  const name = normalised(match[1]!)
  names.add(name)
  for (const extra of (match[2] ?? '').replace(/[[\]\s]/g, '').split(','))
    if (extra !== '') names.add(`${name}[${extra}]`)
}

function normalised(name: string): string {
  return name.toLowerCase().replace(/[._-]+/g, '-')
}

/** Lockfiles that list each package in a table of its own. */
const LOCKFILES = ['uv.lock', 'poetry.lock', 'pdm.lock']
const MAX_MEMBERS = 50

/**
 * What is installed besides what the project itself names: packages of the members of its workspace, and what
 * the lockfile adds because others need it.
 */
export function allRequirements(tree: SourceTree, project: PythonProject): ReadonlySet<string> {
  const names = new Set(project.dependencies)
  for (const path of filesNamed(tree, 'pyproject.toml', 3).slice(0, MAX_MEMBERS))
    addPyproject(names, readToml(tree, path))
  for (const path of LOCKFILES)
    for (const [, name] of (tree.read(path) ?? '').matchAll(/^name = "([A-Za-z0-9][\w.-]{0,80})"$/gm))
      names.add(normalised(name!))
  for (const name of keysAt(readJson(tree, 'Pipfile.lock'), 'default')) addRequirement(names, name)
  return names
}

/** Whether the project requires any of these. */
export function requires(project: PythonProject, ...names: string[]): boolean {
  return names.some((name) => project.dependencies.has(name))
}

/** The version of Python that pyproject.toml asks for. */
export function pyprojectVersion(project: PythonProject): string | undefined {
  const poetry = at(project.pyproject, 'tool', 'poetry', 'dependencies', 'python')
  return (
    textAt(project.pyproject, 'project', 'requires-python') ??
    (typeof poetry === 'string' ? poetry : textAt(poetry, 'version'))
  )
}

/**
 * Python files in the places where an app starts: the root, `src`, `app`, `backend`, and the packages of the
 * root and of folders that hold one.
 */
export function sourceFiles(tree: SourceTree): string[] {
  const packages = tree
    .files()
    .filter((path) => /^(?:(?:src|backend|server)\/)?[A-Za-z_][A-Za-z0-9_]*\/__init__\.py$/.test(path))
    .map((path) => path.slice(0, path.lastIndexOf('/')))
  const folders = ['', 'src', 'app', 'api', 'backend', 'server', 'src/app', 'src/api', ...packages]
  const files = [...new Set(folders)].flatMap((folder) =>
    filesIn(tree, folder).filter((path) => path.endsWith('.py')),
  )
  const order = [
    'main.py',
    'app.py',
    'server.py',
    'wsgi.py',
    'asgi.py',
    'api.py',
    'application.py',
    'run.py',
    'index.py',
    '__init__.py',
  ]
  const rank = (path: string) => {
    const place = order.indexOf(path.slice(path.lastIndexOf('/') + 1))
    return place < 0 ? order.length : place
  }
  const depth = (path: string) => path.split('/').length
  return [...new Set(files)]
    .filter((path) => !/(?:^|\/)(?:tests?|conftest|setup|migrations|docs|examples?)(?:\/|\.py$)/.test(path))
    .sort((a, b) => depth(a) - depth(b) || rank(a) - rank(b))
    .slice(0, 150)
}

/** `app/main.py` as `app.main`. A `src` folder that is no package stays a path, see `moduleFolder`. */
export function moduleName(path: string): string {
  return joinPath(path)
    .replace(/\.py$/, '')
    .replace(/\/__init__$/, '')
    .replaceAll('/', '.')
}
