import type { SourceTree } from '../../plan.ts'
import { shellWord } from '../../commands.ts'
import { filesNamed, filesWithSuffix, folderOf, hasFolder, skim } from '../../tree-queries.ts'
import { moduleName, requires, sourceFiles, type PythonProject } from './project.ts'

/** How the app of a Python framework is found and started. */
export interface PythonFrameworkPlan {
  framework: string | null
  start: string | undefined
  source: string
  /** Folder in which it starts. */
  folder?: string
  port: number
  ready_path?: string
  /** Packages that the start command needs and the project does not name. */
  extra_packages?: readonly string[]
  build?: string
  release?: string
  env?: Readonly<Record<string, string>>
}

interface Facts {
  name: string
  packages: readonly string[]
  /** Names of the class whose instance is the app. */
  constructors?: readonly string[]
  server: 'gunicorn' | 'uvicorn' | 'hypercorn' | 'script'
  /** Start line for frameworks with a program of their own; `{file}` and `{app}` are filled in. */
  start?: string
  /** Class of gunicorn's workers, where it is not the usual one. */
  worker?: string
  /** What a file calls that serves by itself; without it the program would end at once, and needs a server. */
  runs_itself?: RegExp
  port: number
  ready_path?: string
  env?: Readonly<Record<string, string>>
}

/** Frameworks for whole apps first: most of them stand on the smaller ones below. */
const FACTS: readonly Facts[] = [
  {
    name: 'streamlit',
    packages: ['streamlit'],
    server: 'script',
    start: 'streamlit run {file} --server.port $PORT --server.address 0.0.0.0 --server.headless true',
    port: 8501,
    ready_path: '/_stcore/health',
  },
  {
    name: 'chainlit',
    packages: ['chainlit'],
    server: 'script',
    start: 'chainlit run {file} --host 0.0.0.0 --port $PORT --headless',
    port: 8000,
  },
  {
    name: 'panel',
    packages: ['panel'],
    server: 'script',
    start: 'panel serve {file} --address 0.0.0.0 --port $PORT --allow-websocket-origin="*"',
    port: 5006,
  },
  {
    name: 'bokeh',
    packages: ['bokeh'],
    server: 'script',
    start: 'bokeh serve {file} --address 0.0.0.0 --port $PORT --allow-websocket-origin="*"',
    port: 5006,
  },
  {
    name: 'reflex',
    packages: ['reflex'],
    server: 'script',
    start: 'reflex run --env prod --single-port --frontend-port $PORT',
    port: 3000,
  },
  {
    name: 'mesop',
    packages: ['mesop'],
    server: 'script',
    start: 'gunicorn --bind 0.0.0.0:$PORT {module}:me',
    port: 8080,
  },
  {
    name: 'shiny',
    packages: ['shiny'],
    server: 'script',
    start: 'shiny run {file} --host 0.0.0.0 --port $PORT',
    port: 8000,
    ready_path: '/',
  },
  {
    name: 'marimo',
    packages: ['marimo'],
    server: 'script',
    start: 'marimo run {file} --headless --host 0.0.0.0 --port $PORT',
    port: 2718,
  },
  {
    name: 'solara',
    packages: ['solara'],
    server: 'script',
    start: 'solara run {file} --host 0.0.0.0 --port $PORT --production',
    port: 8765,
  },
  {
    name: 'taipy',
    packages: ['taipy', 'taipy-gui'],
    server: 'script',
    start: 'taipy run {file} --host 0.0.0.0 --port $PORT',
    port: 5000,
  },
  {
    name: 'voila',
    packages: ['voila'],
    server: 'script',
    start: 'voila {file} --no-browser --port=$PORT --Voila.ip=0.0.0.0',
    port: 8866,
  },
  {
    name: 'flet',
    packages: ['flet', 'flet-web'],
    server: 'script',
    port: 8550,
    env: { FLET_FORCE_WEB_SERVER: 'true', FLET_SERVER_IP: '0.0.0.0', FLET_SERVER_PORT: '{port}' },
  },
  {
    // Its own `serve()` does nothing unless the file is the program, and then watches the source for changes.
    name: 'fasthtml',
    packages: ['python-fasthtml', 'fasthtml'],
    constructors: ['FastHTML', 'FastHTMLWithLiveReload', 'fast_app'],
    server: 'uvicorn',
    port: 5001,
  },
  {
    name: 'gradio',
    packages: ['gradio'],
    server: 'script',
    port: 7860,
    ready_path: '/',
    env: { GRADIO_SERVER_NAME: '0.0.0.0', GRADIO_SERVER_PORT: '{port}' },
  },
  { name: 'nicegui', packages: ['nicegui'], server: 'script', port: 8080 },
  { name: 'functions-framework', packages: ['functions-framework'], server: 'script', port: 8080 },
  {
    name: 'dash',
    packages: ['dash'],
    constructors: ['Dash'],
    server: 'gunicorn',
    port: 8050,
    ready_path: '/',
  },
  {
    name: 'fastapi',
    packages: ['fastapi', 'fastapi-slim'],
    constructors: ['FastAPI'],
    server: 'uvicorn',
    port: 8000,
  },
  {
    name: 'flask',
    packages: ['flask', 'flask-restful', 'flask-restx', 'apiflask', 'connexion'],
    constructors: ['Flask', 'APIFlask', 'OpenAPI'],
    server: 'gunicorn',
    port: 8000,
  },
  { name: 'quart', packages: ['quart'], constructors: ['Quart'], server: 'hypercorn', port: 8000 },
  {
    name: 'litestar',
    packages: ['litestar', 'starlite'],
    constructors: ['Litestar', 'Starlite'],
    server: 'uvicorn',
    port: 8000,
  },
  {
    name: 'sanic',
    packages: ['sanic'],
    constructors: ['Sanic'],
    server: 'script',
    start: 'sanic {app} --host 0.0.0.0 --port $PORT',
    port: 8000,
  },
  {
    name: 'blacksheep',
    packages: ['blacksheep'],
    constructors: ['Application'],
    server: 'uvicorn',
    port: 8000,
  },
  {
    name: 'robyn',
    packages: ['robyn'],
    server: 'script',
    port: 8080,
    env: { ROBYN_HOST: '0.0.0.0', ROBYN_PORT: '{port}' },
  },
  {
    name: 'falcon',
    packages: ['falcon'],
    constructors: ['App', 'API', 'falcon.App', 'falcon.API'],
    server: 'gunicorn',
    port: 8000,
  },
  {
    name: 'starlette',
    packages: ['starlette'],
    constructors: ['Starlette'],
    server: 'uvicorn',
    port: 8000,
  },
  {
    name: 'pyramid',
    packages: ['pyramid'],
    server: 'script',
    start: 'pserve {file} http_port=$PORT',
    port: 6543,
  },
  {
    name: 'aiohttp',
    packages: ['aiohttp'],
    constructors: ['Application'],
    server: 'gunicorn',
    worker: 'aiohttp.GunicornWebWorker',
    runs_itself: /\brun_app\(|\bAppRunner\(/,
    port: 8080,
  },
  { name: 'tornado', packages: ['tornado'], server: 'script', port: 8888 },
  {
    name: 'bottle',
    packages: ['bottle'],
    constructors: ['Bottle', 'default_app'],
    server: 'gunicorn',
    runs_itself: /\brun\(/,
    port: 8080,
  },
  { name: 'cherrypy', packages: ['cherrypy'], server: 'script', port: 8080 },
  { name: 'web-py', packages: ['web-py'], server: 'script', port: 8080 },
]

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
  const facts =
    FACTS.find((candidate) => requires(project, ...candidate.packages) && imported(candidate.packages[0]!)) ??
    FACTS.find((candidate) => requires(project, ...candidate.packages)) ??
    FACTS.find((candidate) => imported(candidate.packages[0]!))
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
 * Modules below a `src` folder that is no package are imported from there; the same for one that only groups
 * scripts.
 */
function importPath(tree: SourceTree, file: string): { folder: string; module: string } {
  const folder = folderOf(file)
  const top = folder.split('/')[0]!
  if (folder === '') return { folder: '', module: moduleName(file) }
  const is_package =
    tree.has(`${folder}/__init__.py`) ||
    new RegExp(`^[ \\t]*(?:from|import)[ \\t]+${top}\\b`, 'm').test(skim(tree, file)) ||
    !importsNeighbour(tree, file)
  if (
    top === 'src' &&
    !tree.has('src/__init__.py') &&
    !/^[ \t]*(?:from|import)[ \t]+src\b/m.test(skim(tree, file))
  )
    return { folder: 'src', module: moduleName(file.slice(4)) }
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

/** A program without a server in front: the file that is there to be run. */
function planScript(tree: SourceTree, project: PythonProject, files: readonly string[]): PythonFrameworkPlan {
  const named = [
    'main.py',
    'app.py',
    'server.py',
    'run.py',
    'wsgi.py',
    'bot.py',
    'index.py',
    'application.py',
    'start.py',
    'hello.py',
    'src/main.py',
    'src/app.py',
    'src/server.py',
    'app/main.py',
    'app/app.py',
    'server/main.py',
  ].find((path) => tree.has(path))
  const module =
    files.map((path) => path).find((path) => path.endsWith('/__main__.py')) ??
    tree.files().find((path) => /^(?:src\/)?[A-Za-z_][\w-]*\/__main__\.py$/.test(path))
  const guarded = files.find((path) => !path.includes('/') && /^if __name__[ ]*==/m.test(skim(tree, path)))
  const file =
    named ??
    (module === undefined
      ? (guarded ??
        (files.filter((path) => !path.includes('/')).length === 1
          ? files.find((path) => !path.includes('/'))
          : undefined))
      : undefined)
  const text = skim(tree, file)
  const port =
    /PORT['"]\s{0,5},\s{0,5}['"]?(\d{2,5})/.exec(text)?.[1] ??
    (/\bPORT\b/.test(text) && /environ|getenv/.test(text)
      ? undefined
      : (/\bport\s{0,5}=\s{0,5}(\d{2,5})\b/i.exec(text)?.[1] ??
        /\(\s{0,5}['"][\d.]*['"]\s{0,5},\s{0,5}(\d{2,5})\s{0,5}\)/.exec(text)?.[1]))
  const base = { framework: null, port: port === undefined ? 8000 : Number(port) }
  if (file !== undefined) return { ...base, start: `python ${shellWord(file)}`, source: file }
  if (module !== undefined) {
    const in_src = module.startsWith('src/')
    return {
      ...base,
      start: `python -m ${moduleName(in_src ? module.slice(4) : module).replace(/\.__main__$/, '')}`,
      source: module,
      folder: in_src ? 'src' : undefined,
    }
  }
  const script = Object.keys(
    (project.pyproject?.project as { scripts?: object } | undefined)?.scripts ?? {},
  )[0]
  return {
    ...base,
    start: script !== undefined && /^[A-Za-z0-9_.-]+$/.test(script) ? script : undefined,
    source: 'project.scripts in pyproject.toml',
  }
}

function planDjango(tree: SourceTree, project: PythonProject, manage: string): PythonFrameworkPlan {
  const folder = folderOf(manage)
  const inside = tree.sub(folder)
  const wsgi = inside.files().find((path) => /^(?:[A-Za-z_]\w*\/){1,2}wsgi\.py$/.test(path))
  const asgi = inside.files().find((path) => /^(?:[A-Za-z_]\w*\/){1,2}asgi\.py$/.test(path))
  const settings = inside
    .files()
    .filter((path) => /^(?:[A-Za-z_]\w*\/){1,2}(?:settings(?:\/\w+)?|base|production|prod)\.py$/.test(path))
    .map((path) => skim(inside, path))
    .join('\n')
  const fallback =
    /DJANGO_SETTINGS_MODULE['"],\s{0,5}['"]([A-Za-z_][\w]*)\.settings/.exec(skim(tree, manage))?.[1] ??
    'config'
  const server = djangoServer(project, asgi !== undefined)
  const target = server.asgi ? moduleName(asgi!) : wsgi === undefined ? `${fallback}.wsgi` : moduleName(wsgi)
  const line = server.start.replace('{target}', `${target}:application`)
  const migrate = 'python manage.py migrate --noinput'
  // SQLite lives in the container, where a release command's container does not reach: those apps migrate as
  // they start.
  const only_sqlite =
    /sqlite3/.test(settings) &&
    !/dj_database_url|environ|env\(|env\.db|postgres|mysql|config\(/i.test(settings)
  return {
    framework: 'django',
    start: only_sqlite ? `${migrate} && exec ${line}` : line,
    source: manage,
    folder,
    port: 8000,
    extra_packages: server.installed ? [] : ['gunicorn'],
    build: /STATIC_ROOT/.test(settings)
      ? "python manage.py collectstatic --noinput || echo 'collectstatic failed; static files are not collected. Give the settings it needs a default.'"
      : undefined,
    release: folder === '' ? migrate : `cd ${shellWord(folder)} && ${migrate}`,
  }
}

function djangoServer(
  project: PythonProject,
  has_asgi: boolean,
): { start: string; asgi: boolean; installed: boolean } {
  if (requires(project, 'gunicorn'))
    return { start: 'gunicorn {target} --bind 0.0.0.0:$PORT', asgi: false, installed: true }
  if (has_asgi && requires(project, 'daphne'))
    return { start: 'daphne -b 0.0.0.0 -p $PORT {target}', asgi: true, installed: true }
  if (has_asgi && requires(project, 'uvicorn'))
    return { start: 'uvicorn {target} --host 0.0.0.0 --port $PORT', asgi: true, installed: true }
  return { start: 'gunicorn {target} --bind 0.0.0.0:$PORT', asgi: false, installed: false }
}
