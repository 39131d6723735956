import type { SourceTree } from '../../plan.ts'
import { at, textAt } from '../../text-formats.ts'
import { filesWithSuffix } from '../../tree-queries.ts'
import type { PythonProject } from './project.ts'

/** How the packages of a Python project are installed, into the virtual environment at `/opt/venv`. */
export interface PythonInstaller {
  name: 'pip' | 'poetry' | 'pdm' | 'uv' | 'pipenv' | 'conda'
  source: string
  /** Lines that bring the installer. */
  setup: readonly string[]
  /** Null when nothing is to be installed. */
  install: string | null
  /** Installs the members of a workspace, which import one another, once their source is there. */
  install_members?: string
  /** Files that decide what is installed; empty when the source itself is part of it. */
  manifests: readonly string[]
}

const CONDA_FILES = ['environment.yml', 'environment.yaml']

/** Whether conda's file is the only one that says what the project needs. */
export function needsConda(tree: SourceTree, project: PythonProject): boolean {
  return (
    CONDA_FILES.some((path) => tree.has(path)) &&
    project.requirements === undefined &&
    project.pyproject === undefined &&
    !tree.has('Pipfile') &&
    !tree.has('setup.py')
  )
}

/** Chooses by lockfile first: it says which program wrote it. */
export function chooseInstaller(tree: SourceTree, project: PythonProject): PythonInstaller {
  const has = (...paths: string[]) => paths.filter((path) => tree.has(path))
  const tool = (name: string) => at(project.pyproject, 'tool', name) !== undefined
  if (tree.has('uv.lock')) {
    const members = filesWithSuffix(tree, ['pyproject.toml'], 3)
    return {
      name: 'uv',
      source: 'uv.lock',
      setup: ['pip install --no-cache-dir uv'],
      install: `uv sync --frozen --no-dev --no-install-workspace${members.length > 1 ? ' --all-packages' : ''}`,
      // What was installed beside the locked packages stays; the root is run from its folder.
      ...(members.length > 1 && at(project.pyproject, 'tool', 'uv', 'workspace') !== undefined
        ? { install_members: 'uv sync --frozen --no-dev --all-packages --no-install-project --inexact' }
        : {}),
      manifests: hasLocalPackages(tree)
        ? []
        : [...has('uv.lock', 'README.md', '.python-version'), ...members],
    }
  }
  if (tree.has('poetry.lock') || (tool('poetry') && project.requirements === undefined)) {
    const source = tree.has('poetry.lock') ? 'poetry.lock' : 'tool.poetry in pyproject.toml'
    return {
      name: 'poetry',
      source,
      setup: ['pip install --no-cache-dir poetry'],
      install: 'poetry install --only main --no-root --no-interaction',
      // A package of the repository must be there before it can be installed.
      manifests: hasLocalPackages(tree) ? [] : has('pyproject.toml', 'poetry.lock', 'poetry.toml'),
    }
  }
  if (
    tree.has('pdm.lock') ||
    (tool('pdm') &&
      project.requirements === undefined &&
      textAt(project.pyproject, 'project', 'name') !== undefined)
  ) {
    return {
      name: 'pdm',
      source: tree.has('pdm.lock') ? 'pdm.lock' : 'tool.pdm in pyproject.toml',
      setup: ['pip install --no-cache-dir pdm'],
      install: 'pdm install --prod --no-self',
      manifests: hasLocalPackages(tree) ? [] : has('pyproject.toml', 'pdm.lock', 'README.md'),
    }
  }
  if (tree.has('Pipfile') && (tree.has('Pipfile.lock') || project.requirements === undefined)) {
    const install = tree.has('Pipfile.lock')
      ? 'pipenv requirements > /tmp/requirements.txt && pip install -r /tmp/requirements.txt'
      : 'pipenv install --skip-lock'
    return {
      name: 'pipenv',
      source: 'Pipfile',
      setup: ['pip install --no-cache-dir pipenv'],
      install,
      manifests: has('Pipfile', 'Pipfile.lock'),
    }
  }
  if (needsConda(tree, project)) {
    const file = CONDA_FILES.find((path) => tree.has(path))!
    return {
      name: 'conda',
      source: file,
      setup: [],
      install: `conda env create --yes --quiet --prefix /opt/venv --file ${file} && conda clean --all --yes`,
      manifests: [file],
    }
  }
  if (project.requirements !== undefined) return fromRequirements(tree, project.requirements)
  return fromMetadata(tree, project, tool('uv'))
}

/** Whether pyproject.toml takes packages from folders of the repository, beside the members of a workspace. */
function hasLocalPackages(tree: SourceTree): boolean {
  const text = (tree.read('pyproject.toml') ?? '').slice(0, 200_000)
  return /^[ \t]*[\w."-]{1,80}[ \t]*=[ \t]*\[?\{[^}\n]{0,200}\bpath[ \t]*=|@ file:|"-e file:/m.test(text)
}

function fromRequirements(tree: SourceTree, requirements: string): PythonInstaller {
  const files = tree
    .files()
    .filter((path) =>
      /^(?:requirements?(?:[.-][A-Za-z0-9_.-]*)?|constraints?[A-Za-z0-9_.-]*|requirements\/[A-Za-z0-9_.-]+)\.(?:txt|in)$/.test(
        path,
      ),
    )
  // A line that installs the project itself, or a file of it, needs the source first.
  const local = files.some((path) =>
    /^[ \t]*(?:-e[ \t]|--editable|\.{1,2}(?:\/|\[|[ \t]*$)|file:)/m.test(tree.read(path) ?? ''),
  )
  return {
    name: 'pip',
    source: requirements,
    setup: [],
    install: `pip install -r ${requirements}`,
    manifests: local ? [] : files,
  }
}

function fromMetadata(tree: SourceTree, project: PythonProject, uv: boolean): PythonInstaller {
  if (project.pyproject !== undefined && at(project.pyproject, 'project') !== undefined) {
    const name = uv ? 'uv' : 'pip'
    // A project with scripts of its own must be installed; otherwise its dependencies are enough and its
    // layout does not matter.
    const packaged =
      at(project.pyproject, 'build-system') !== undefined &&
      at(project.pyproject, 'project', 'scripts') !== undefined
    if (packaged)
      return {
        name,
        source: 'pyproject.toml',
        setup: [],
        install: 'pip install .',
        manifests: [],
      }
    return {
      name,
      source: 'pyproject.toml',
      setup: ['pip install --no-cache-dir uv'],
      install: 'uv pip install -r pyproject.toml',
      manifests: ['pyproject.toml'],
    }
  }
  if (tree.has('setup.py'))
    return {
      name: 'pip',
      source: 'setup.py',
      setup: [],
      install: 'pip install .',
      manifests: [],
    }
  return { name: 'pip', source: 'no manifest', setup: [], install: null, manifests: [] }
}
