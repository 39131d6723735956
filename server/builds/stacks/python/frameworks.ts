import type { SourceTree } from '../../plan.ts'
import { shellWord } from '#server/kernel/shell-word'
import { filesNamed, filesWithSuffix, folderOf, hasFolder, skim } from '../../tree-queries.ts'
import { moduleName, requires, sourceFiles, type PythonProject } from './project.ts'
import { planDjango } from './django.ts'
import { FACTS, type Facts, type PythonFrameworkPlan } from './framework-facts.ts'
import { planScript } from './script.ts'

/** The framework of a project by its dependencies, or by its imports when it has no manifest. */
export function planPythonFramework(tree: SourceTree, project: PythonProject): PythonFrameworkPlan {
  const django = filesNamed(tree, 'manage.py', 2)[0]
  if (django !== undefined && (requires(project, 'django') || /django/i.test(skim(tree, django))))
    return planDjango(tree, project, django)
  const files = sourceFiles(tree)
  const imports = files
    .slice(0, 40)
    .map((path) => skim(tree, path))
    .join('\n')
  const imported = (name: string) =>
    new RegExp(
      `^[ \\t]*(?:from|import)[ \\t]+${name.replace('python-', '').replaceAll('-', '_')}\\b`,
      'm',
    ).test(imports)
  const possible = FACTS.filter(({ only_if }) => only_if?.test(imports) ?? true)
  const facts =
    possible.find(
      (candidate) => requires(project, ...candidate.packages) && imported(candidate.packages[0]!),
    ) ??
    possible.find((candidate) => requires(project, ...candidate.packages)) ??
    possible.find((candidate) => imported(candidate.packages[0]!))
  return facts === undefined ? planScript(tree, project, files) : planFacts(tree, project, files, facts)
}

function planFacts(
  tree: SourceTree,
  project: PythonProject,
  files: readonly string[],
  facts: Facts,
): PythonFrameworkPlan {
  const base = {
    framework: facts.name,
    port: facts.port,
    ready_path: facts.ready_path,
    env: filled(facts),
  }
  const object = facts.constructors === undefined ? undefined : findObject(tree, files, facts)
  const file = object?.file ?? mainFile(tree, files, facts)
  if (facts.name === 'functions-framework' && file !== undefined) {
    const name =
      /^@functions_framework\.\w+[^\n]*\n(?:@[^\n]*\n){0,3}(?:async )?def[ ]+(\w{1,80})/m.exec(
        skim(tree, file),
      )?.[1] ?? /^def[ ]+(\w{1,80})\([ ]*request\b/m.exec(skim(tree, file))?.[1]
    if (name !== undefined)
      return {
        ...base,
        start: `functions-framework --source ${shellWord(file)} --target ${name} --port $PORT`,
        source: file,
      }
  }
  if (facts.start !== undefined && file !== undefined) {
    const { folder, module } = importPath(tree, file)
    const in_folder = facts.start.includes('{app}') || facts.start.includes('{module}')
    const start = facts.start
      .replace('{file}', shellWord(file))
      .replace('{module}', module)
      .replace('{app}', `${module}:${object?.name ?? 'app'}`)
    return { ...base, start, source: file, folder: in_folder ? folder : undefined }
  }
  const serves =
    facts.runs_itself !== undefined && files.some((path) => facts.runs_itself!.test(skim(tree, path)))
  if (facts.server === 'script' || object === undefined || serves) {
    const script = planScript(tree, project, files)
    return { ...script, ...base, port: base.port }
  }
  const { folder, module } = importPath(tree, object.file)
  const target = `${module}:${object.name}`
  const lines = {
    gunicorn: `gunicorn ${shellWord(target)} --bind 0.0.0.0:$PORT${facts.worker === undefined ? '' : ` --worker-class ${facts.worker}`}`,
    uvicorn: `uvicorn ${shellWord(target.replace('()', ''))} --host 0.0.0.0 --port $PORT${target.endsWith('()') ? ' --factory' : ''}`,
    hypercorn: `hypercorn ${shellWord(target)} --bind 0.0.0.0:$PORT`,
  }
  const has_server =
    requires(project, facts.server) ||
    (facts.server === 'uvicorn' &&
      requires(
        project,
        'fastapi[standard]',
        'fastapi[all]',
        'fastapi-cli',
        'uvicorn[standard]',
        'litestar[standard]',
        'python-fasthtml',
      ))
  return {
    ...base,
    start: lines[facts.server],
    source: object.file,
    folder,
    extra_packages: has_server ? [] : [facts.server],
  }
}

function filled(facts: Facts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(facts.env ?? {}).map(([key, value]) => [key, value.replace('{port}', String(facts.port))]),
  )
}

/** Where the app object is made: `app = Flask(…)`, or a factory that returns one. */
function findObject(
  tree: SourceTree,
  files: readonly string[],
  facts: Facts,
): { file: string; name: string } | undefined {
  const made = new RegExp(
    `^([A-Za-z_]\\w{0,60})[ ]*(?:,[ \\w,]{1,80}|:[^=\\n]{1,60})?=[ ]*(?:\\w+\\.)?(?:${facts.constructors!.map((name) => name.replace('.', '\\.')).join('|')})\\(`,
    'm',
  )
  const texts = files.map((file) => ({ file, text: skim(tree, file) }))
  if (facts.name === 'dash') {
    const exposed = texts
      .map(({ file, text }) => ({
        file,
        name: /^(\w{1,60})[ ]*=[ ]*\w+\.server\b/m.exec(text)?.[1],
      }))
      .find(({ name }) => name !== undefined)
    if (exposed !== undefined) return { file: exposed.file, name: exposed.name! }
  }
  for (const { file, text } of texts) {
    const name = made.exec(text)?.[1]
    if (name !== undefined) return { file, name: facts.name === 'dash' ? `${name}.server` : name }
  }
  const called = texts
    .map(({ file, text }) => ({
      file,
      name: /^(app|application|api|server)[ ]*(?::[^=\n]{1,60})?=[ ]*\w*(?:create|make|get|build|init)_\w+\(/m.exec(
        text,
      )?.[1],
    }))
    .find(({ name }) => name !== undefined)
  if (called !== undefined) return { file: called.file, name: called.name! }
  const factory = texts
    .map(({ file, text }) => ({
      file,
      name: /^def[ ]+((?:create|make|get|build)_(?:app|application|api))\(/m.exec(text)?.[1],
    }))
    .find(({ name }) => name !== undefined)
  return factory === undefined ? undefined : { file: factory.file, name: `${factory.name}()` }
}

/**
 * Modules below a `src` folder that is no package are imported from there, and packages of `backend`; the same
 * for one that only groups scripts.
 */
function importPath(tree: SourceTree, file: string): { folder: string; module: string } {
  const folder = folderOf(file)
  const top = folder.split('/')[0]!
  if (folder === '') return { folder: '', module: moduleName(file) }
  const is_package =
    tree.has(`${folder}/__init__.py`) ||
    new RegExp(`^[ \\t]*(?:from|import)[ \\t]+${top}\\b`, 'm').test(skim(tree, file)) ||
    !importsNeighbour(tree, file)
  const holds_packages = top === 'src' || (['backend', 'server'].includes(top) && folder !== top)
  if (
    holds_packages &&
    !tree.has(`${top}/__init__.py`) &&
    !new RegExp(`^[ \\t]*(?:from|import)[ \\t]+${top}\\b`, 'm').test(skim(tree, file))
  )
    return { folder: top, module: moduleName(file.slice(top.length + 1)) }
  return is_package
    ? { folder: '', module: moduleName(file) }
    : { folder, module: moduleName(file.slice(folder.length + 1)) }
}

function importsNeighbour(tree: SourceTree, file: string): boolean {
  const folder = folderOf(file)
  return [...skim(tree, file).matchAll(/^(?:from|import)[ \t]+([A-Za-z_]\w{0,60})/gm)].some(
    ([, name]) => tree.has(`${folder}/${name}.py`) || hasFolder(tree, `${folder}/${name}`),
  )
}

function mainFile(tree: SourceTree, files: readonly string[], facts: Facts): string | undefined {
  if (facts.name === 'voila') return filesWithSuffix(tree, ['.ipynb'], 1)[0]
  if (facts.name === 'pyramid') return ['production.ini', 'development.ini'].find((path) => tree.has(path))
  const package_name = facts.packages[0]!.replace('python-', '').replaceAll('-', '_')
  const usual = [
    'streamlit_app.py',
    'app.py',
    'main.py',
    'Home.py',
    'home.py',
    'Hello.py',
    'hello.py',
    'src/app.py',
    'src/main.py',
    'app/main.py',
    'app/app.py',
  ].find((path) => tree.has(path))
  return (
    usual ??
    files.find((path) =>
      new RegExp(`^[ \\t]*(?:import|from)[ \\t]+${package_name}\\b`, 'm').test(skim(tree, path)),
    )
  )
}
