import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../plan.ts'
import { filesIn, filesNamed, firstLine, firstOf, folderOf, joinPath, skim } from '../tree-queries.ts'
import { readToml, textAt } from '../text-formats.ts'
import {
  chooseVersion,
  toolVersion,
  versionFile,
  type ChosenVersion,
  type VersionRequest,
} from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { readManifest } from './node/manifest.ts'
import { planPythonFramework } from './python/frameworks.ts'
import type { PythonFrameworkPlan } from './python/framework-facts.ts'
import { chooseInstaller, type PythonInstaller } from './python/package-manager.ts'
import { pyprojectVersion, readPythonProject, type PythonProject } from './python/project.ts'
import { pythonSystemPackages } from './python/system-packages.ts'
import { TCP, because, type Stack, type StackContext } from './stack.ts'

const MANIFESTS = [
  'requirements.txt',
  'pyproject.toml',
  'Pipfile',
  'setup.py',
  'uv.lock',
  'poetry.lock',
  'pdm.lock',
  'setup.cfg',
  'requirements/production.txt',
  'requirements/base.txt',
  'requirements/prod.txt',
  'environment.yml',
  'environment.yaml',
  'requirement.txt',
]
const ENTRIES = [
  'main.py',
  'app.py',
  'manage.py',
  'server.py',
  'wsgi.py',
  'asgi.py',
  'run.py',
  'bot.py',
  'index.py',
  'application.py',
  'streamlit_app.py',
]

/** Python: web frameworks behind their usual server, other programs as they are. */
export const python: Stack = {
  name: 'python',
  help: 'A requirements.txt, pyproject.toml, Pipfile or setup.py, or a main.py or app.py.',
  looked_for: ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'main.py', 'app.py', 'manage.py'],
  detect: (tree) =>
    (MANIFESTS.some((path) => tree.has(path)) ||
      ENTRIES.some((path) => tree.has(path)) ||
      hasOnlyScript(tree)) &&
    !belongsToNode(tree),
  plan: planPython,
}

/**
 * A Node app with scripts in Python beside it: it is started by its package.json, and no Python framework is
 * in sight.
 */
function belongsToNode(tree: SourceTree): boolean {
  const scripts = readManifest(tree)?.scripts
  if (scripts === undefined || /\bpython/.test(scripts.get('start') ?? '')) return false
  const runs = scripts.has('start') || (scripts.has('build') && !MANIFESTS.some((path) => tree.has(path)))
  return runs && planPythonFramework(tree, readPythonProject(tree)).framework === null
}

function hasOnlyScript(tree: SourceTree): boolean {
  return (
    filesIn(tree).filter((path) => path.endsWith('.py')).length === 1 ||
    (filesNamed(tree, 'manage.py', 1).length > 0 && !tree.has('package.json'))
  )
}

function planPython({ tree, version_request }: StackContext) {
  const project = readPythonProject(tree)
  const installer = chooseInstaller(tree, project)
  const plan = planProgram(tree, project)
  const version = pythonVersion(tree, project, version_request)
  const { port } = plan
  return {
    stack: 'python',
    framework: plan.framework,
    version: version.version,
    package_manager: installer.name,
    install_command: installer.install,
    build_command: plan.build ?? null,
    start_command: plan.start ?? null,
    release_command: plan.release ?? null,
    port,
    health_check: plan.ready_path === undefined ? TCP : { type: 'http' as const, path: plan.ready_path },
    explanation: [
      ...because('stack', 'python', installer.source === 'no manifest' ? plan.source : installer.source),
      ...because(
        'framework',
        plan.framework,
        plan.framework === 'django' ? 'manage.py' : 'dependencies or imports',
      ),
      ...because('version', version.version, version.source),
      ...because('package_manager', installer.name, installer.source),
      ...because('install_command', installer.install, installer.source),
      ...because('build_command', plan.build, 'STATIC_ROOT in the settings'),
      ...because('start_command', plan.start, plan.source),
      ...because('release_command', plan.release, 'manage.py'),
      ...because('port', String(port), 'default, set as PORT'),
    ],
    layout: (commands: Parameters<typeof pythonLayout>[5]) =>
      pythonLayout(tree, project, installer, plan, version.version, commands),
  }
}

/** Where a workspace has its programs, more than anybody tries out. */
const MAX_MEMBERS = 50

/** How the project is started; the root of a workspace leaves that to one of its members. */
function planProgram(tree: SourceTree, project: PythonProject): PythonFrameworkPlan {
  const plan = planPythonFramework(tree, project)
  if (plan.start !== undefined) return plan
  const members = filesNamed(tree, 'pyproject.toml', 3).map(folderOf)
  for (const folder of members.filter((path) => path !== '').slice(0, MAX_MEMBERS)) {
    const inside = tree.sub(folder)
    const found = planPythonFramework(inside, readPythonProject(inside))
    if (found.start !== undefined)
      return {
        ...found,
        folder: joinPath(folder, found.folder ?? ''),
        source: joinPath(folder, found.source),
        ...(found.release === undefined ? {} : { release: `cd ${shellWord(folder)} && ${found.release}` }),
      }
  }
  return plan
}

function pythonVersion(
  tree: SourceTree,
  project: PythonProject,
  declared: StackContext['version_request'],
): ChosenVersion {
  const pipfile = readToml(tree, 'Pipfile')
  const pipfile_version =
    textAt(pipfile, 'requires', 'python_full_version') ?? textAt(pipfile, 'requires', 'python_version')
  const requested = pyprojectVersion(project)
  return chooseVersion('python', [
    declared,
    firstLine(tree, 'runtime.txt')?.startsWith('python') === true
      ? versionFile(tree, 'runtime.txt')
      : undefined,
    versionFile(tree, '.python-version'),
    toolVersion(tree, 'python'),
    pipfile_version === undefined ? undefined : { wanted: pipfile_version, source: 'Pipfile' },
    requested === undefined ? undefined : { wanted: requested, source: 'pyproject.toml' },
    condaVersion(tree),
  ])
}

function condaVersion(tree: SourceTree): VersionRequest | undefined {
  const source = firstOf(tree, ['environment.yml', 'environment.yaml'])
  const desired =
    source === undefined
      ? undefined
      : /^\s{0,9}-\s{1,5}python\s{0,3}=?=\s{0,3}(\d+\.\d+)/m.exec(skim(tree, source))?.[1]
  return desired === undefined ? undefined : { wanted: desired, source: source! }
}

/** The environment is as the image has it: nothing is to be installed, or made anew, by a start. */
const INSTALLER_AT_RUN_TIME = {
  UV_PROJECT_ENVIRONMENT: '/opt/venv',
  UV_NO_SYNC: '1',
  UV_FROZEN: '1',
  POETRY_VIRTUALENVS_CREATE: 'false',
  PIPENV_VERBOSITY: '-1',
  PDM_CHECK_UPDATE: 'false',
}

/** Whether a command of the finished image is written as `poetry run …`, `uv run …` or alike. */
function runsThroughInstaller(installer: PythonInstaller, commands: import('./stack.ts').Commands): boolean {
  return (
    installer.name !== 'pip' &&
    installer.name !== 'conda' &&
    [commands.start ?? '', ...commands.others].some((line) =>
      new RegExp(`(?:^|[\\s;&|(])${installer.name}\\s+\\w`).test(line),
    )
  )
}

const ENVIRONMENT = {
  PATH: '/opt/venv/bin:$PATH',
  VIRTUAL_ENV: '/opt/venv',
  PYTHONUNBUFFERED: '1',
  PYTHONDONTWRITEBYTECODE: '1',
}

/** The line that installs the members of a workspace, unless packages are installed in another way. */
const membersOf = (
  { install, install_members }: PythonInstaller,
  commands: import('./stack.ts').Commands,
): string[] => (install_members !== undefined && commands.install === install ? [install_members] : [])

function pythonLayout(
  tree: SourceTree,
  project: PythonProject,
  installer: PythonInstaller,
  plan: PythonFrameworkPlan,
  version: string,
  commands: import('./stack.ts').Commands,
) {
  const from_git = tree
    .files()
    .some(
      (path) =>
        /^(?:requirements.*\.txt|Pipfile|pyproject\.toml)$/.test(path) &&
        /git\+|git\s{0,5}=/.test(tree.read(path) ?? ''),
    )
  const packages = pythonSystemPackages(tree, project, from_git)
  const conda = installer.name === 'conda'
  // An environment of conda brings its own interpreter and libraries, so that it runs anywhere.
  const image = conda ? baseImage('conda') : baseImage('python', version)
  const venv =
    version === '2.7' ? 'pip install virtualenv && virtualenv /opt/venv' : 'python -m venv /opt/venv'
  const extra = commands.own_start ? (plan.extra_packages ?? []) : []
  return {
    build_image: image,
    runtime_image: conda ? baseImage('debian') : image,
    build_packages: packages.build,
    runtime_packages: packages.runtime,
    runtime_setup: runsThroughInstaller(installer, commands) ? installer.setup : [],
    // The installer lives outside the app's environment, so that their packages cannot clash.
    build_setup: conda ? [] : [...installer.setup, venv],
    build_env: {
      ...ENVIRONMENT,
      UV_PROJECT_ENVIRONMENT: '/opt/venv',
      UV_LINK_MODE: 'copy',
      POETRY_VIRTUALENVS_CREATE: 'false',
      PIP_DISABLE_PIP_VERSION_CHECK: '1',
      PIP_ROOT_USER_ACTION: 'ignore',
      PIPENV_VERBOSITY: '-1',
    },
    runtime_env: {
      ...ENVIRONMENT,
      ...(runsThroughInstaller(installer, commands) ? INSTALLER_AT_RUN_TIME : {}),
      ...plan.env,
    },
    manifests: installer.manifests,
    install: commands.install,
    after_install:
      extra.length > 0
        ? [installer.name === 'uv' ? `uv pip install ${extra.join(' ')}` : `pip install ${extra.join(' ')}`]
        : [],
    before_build: membersOf(installer, commands),
    node_assets: nodeAssets(tree),
    build:
      commands.build === plan.build && commands.build !== null && (plan.folder ?? '') !== ''
        ? `cd ${shellWord(plan.folder ?? '')} && ${commands.build}`
        : commands.build,
    keep: [
      { from: '/opt/venv', to: '/opt/venv' },
      { from: '/app', to: '/app' },
    ],
    start: commands.start,
    start_directory: commands.own_start ? plan.folder : '',
    port: commands.port,
  }
}
