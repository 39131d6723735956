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

/** A framework whose apps are found and started by facts alone. */
export interface Facts {
  name: string
  packages: readonly string[]
  /** Names of the class whose instance is the app. */
  constructors?: readonly string[]
  server: 'gunicorn' | 'uvicorn' | 'hypercorn' | 'script'
  /** Start line for frameworks with a program of their own; `{file}` and `{app}` are filled in. */
  start?: string
  /** Class of gunicorn's workers, where it is not the usual one. */
  worker?: string
  /** What the imports of the project must say for this entry to be meant. */
  only_if?: RegExp
  /** What a file calls that serves by itself; without it the program would end at once, and needs a server. */
  runs_itself?: RegExp
  port: number
  ready_path?: string
  env?: Readonly<Record<string, string>>
}

/** Frameworks for whole apps first: most of them stand on the smaller ones below. */
export const FACTS: readonly Facts[] = [
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
    constructors: ['falcon.asgi.App', 'asgi.App'],
    server: 'uvicorn',
    port: 8000,
    only_if: /\bfalcon\.asgi\b|\bfrom falcon import asgi\b/,
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
