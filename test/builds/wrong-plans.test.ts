import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import type { BuildPlan } from '#server/builds/plan'
import { memoryTree } from '#server/builds/source-tree'

type Files = Record<string, string>
const plan = (files: Files, overrides = {}): BuildPlan => detect(memoryTree(files), overrides)
const json = (value: unknown) => JSON.stringify(value)
/** The instructions from the last FROM on: the finished image. */
const finished = ({ dockerfile }: BuildPlan) => dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
const source = ({ explanation }: BuildPlan, field: string) =>
  explanation.find((row) => row.field === field)?.source

describe('Nx workspaces whose targets are inferred', () => {
  const root = {
    'nx.json': json({ plugins: ['@nx/vite/plugin', '@nx/webpack/plugin', '@nx/next/plugin'] }),
    'package.json': json({ name: 'acme', devDependencies: { nx: '21', vite: '6', next: '15', react: '19' } }),
  }
  it.each([
    [
      'a project.json without targets',
      {
        'apps/shop/project.json': json({ name: 'shop', projectType: 'application' }),
        'apps/shop/vite.config.ts': "export default { build: { outDir: '../../dist/apps/shop' } }",
        'apps/shop/index.html': '',
      },
      { build_command: 'npx nx build shop', start_command: null },
      '/app/dist/apps/shop',
    ],
    [
      'a package.json without scripts',
      {
        'apps/web/package.json': json({ name: '@acme/web' }),
        'apps/web/vite.config.mts': 'export default {}',
        'apps/web/index.html': '',
        'libs/ui/package.json': json({ name: '@acme/ui' }),
        'libs/ui/vite.config.ts': "export default { build: { lib: { entry: 'a' } } }",
      },
      { build_command: 'npx nx build @acme/web', start_command: null },
      '/app/apps/web/dist',
    ],
    [
      'a server that webpack builds',
      {
        'apps/api/package.json': json({
          name: 'api',
          nx: { targets: { serve: { executor: '@nx/js:node' } } },
        }),
        'apps/api/src/main.ts': '',
        'apps/api/webpack.config.js':
          "module.exports = { output: { path: join(__dirname, '../../dist/apps/api') }, plugins: [new NxAppWebpackPlugin({ target: 'node' })] }",
        'apps/api-e2e/package.json': json({ name: 'api-e2e' }),
      },
      { build_command: 'npx nx build api', start_command: 'node dist/apps/api/main.js' },
      'dist/apps/api/main.js',
    ],
    [
      'an app of Next.js',
      { 'apps/site/project.json': json({ name: 'site' }), 'apps/site/next.config.js': 'module.exports = {}' },
      { build_command: 'npx nx build site', start_command: 'next start apps/site' },
      'next',
    ],
  ])('are built by the name of the app: %s', (_, files, expected, text) => {
    const found = plan({ ...root, ...files })
    expect(found).toMatchObject(expected)
    expect(found.dockerfile).toContain(text)
  })
})

describe('a package manager that runs in the finished image is there', () => {
  const pnpm = (scripts: Files, more: Files = {}) =>
    plan({
      'package.json': json({
        name: 'a',
        packageManager: 'pnpm@9.15.0',
        scripts,
        dependencies: { express: '5' },
      }),
      'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
      'server.js': '',
      ...more,
    })
  it.each([
    [
      'a script that its start script calls',
      { start: 'npm run go', go: 'pnpm run migrate && node server.js' },
      {},
    ],
    ['a process', { start: 'node server.js' }, { Procfile: 'web: node server.js\nworker: pnpm run work' }],
    [
      'a release command',
      { start: 'node server.js' },
      { Procfile: 'web: node server.js\nrelease: pnpm db:up' },
    ],
    ['the app itself', { start: 'node server.js' }, { 'server.js': "spawn('pnpm', ['run', 'work'])" }],
  ])('when %s needs it', (_, scripts, more) => {
    expect(finished(pnpm(scripts as unknown as Files, more as unknown as Files))).toContain(
      'npm install --global pnpm@9.15.0',
    )
  })
  it('and is left out where nothing calls it', () => {
    expect(finished(pnpm({ start: 'node server.js', dev: 'pnpm run x' }))).not.toContain('pnpm')
  })
  it.each([
    [
      'poetry',
      { 'poetry.lock': '', 'pyproject.toml': '[tool.poetry]\nname="a"' },
      'poetry run python main.py',
    ],
    ['uv', { 'uv.lock': '', 'pyproject.toml': '[project]\nname="a"' }, 'uv run main.py'],
    ['pipenv', { Pipfile: '', 'Pipfile.lock': '{}' }, 'pipenv run python main.py'],
  ])('also %s', (name, files, line) => {
    const found = plan({ ...(files as unknown as Files), 'main.py': '', Procfile: `web: ${line}` })
    expect(finished(found)).toContain(`pip install --no-cache-dir ${name}`)
    expect(finished(plan({ ...(files as unknown as Files), 'main.py': '' }))).not.toContain('pip install')
  })
})

describe('versions', () => {
  it.each([
    ['5.3', '6', '16'],
    ['5.4', '7', '18'],
    ["'6.0'", '8', undefined],
  ])('of Node fit a lockfile %s of pnpm', (format, pnpm, node) => {
    const files = {
      'package.json': json({ scripts: { start: 'node a.js' } }),
      'pnpm-lock.yaml': `lockfileVersion: ${format}\n`,
    }
    const found = plan(files)
    expect(found.dockerfile).toContain(`pnpm@${pnpm}`)
    if (node !== undefined) expect(found.version).toBe(node)
    expect(plan({ ...files, '.nvmrc': '20' }).version).toBe('20')
  })
  it.each([
    ['bun', '>=1.0.0', 'bun.lock', '', 'bun@1'],
    ['pnpm', '>=6', 'pnpm-lock.yaml', "lockfileVersion: '9.0'\n", 'pnpm@9'],
    ['pnpm', '>=7.0.0 <9', 'pnpm-lock.yaml', "lockfileVersion: '6.0'\n", 'pnpm@8'],
    ['pnpm', '^8.6.0', 'pnpm-lock.yaml', "lockfileVersion: '6.0'\n", 'pnpm@8'],
    ['pnpm', '~8.6.0', 'pnpm-lock.yaml', "lockfileVersion: '6.0'\n", 'pnpm@8.6'],
    ['pnpm', '8.6.1', 'pnpm-lock.yaml', "lockfileVersion: '6.0'\n", 'pnpm@8.6.1'],
    ['yarn', '>=1.0.0', 'yarn.lock', '__metadata:\n  version: 8\n', '@yarnpkg/cli-dist@4'],
  ])('of %s are not the lower end of the range %s', (name, range, lock, text, requested) => {
    const found = plan({
      'package.json': json({ scripts: { start: 'node a.js' }, engines: { [name]: range } }),
      [lock]: text,
    })
    expect(found.dockerfile).toMatch(new RegExp(`npm install --global (?:--force )?${requested}(?![.\\d])`))
  })
})

describe('the port', () => {
  const port = (expression: string) =>
    plan({
      'package.json': json({ scripts: { start: 'node a.js' } }),
      'a.js': `http.createServer(answer).listen(${expression})`,
    }).port
  it.each([
    ['4567', 4567],
    ["4567, '0.0.0.0'", 4567],
    ['4000 + 567', 3000],
    ['4000 + Number(index), done', 3000],
  ])('is what listen(%s) is given, and no part of a sum', (expression, expected) => {
    expect(port(expression)).toBe(expected)
  })
})

describe("npm's lockfile", () => {
  const files = (range: string) => ({
    'package.json': json({ scripts: { start: 'node a.js' }, dependencies: { ms: '^2.1.3' } }),
    'package-lock.json': json({
      lockfileVersion: 3,
      packages: { '': { dependencies: { ms: range } }, 'node_modules/ms': {} },
    }),
  })
  it('is insisted on where it fits', () => {
    expect(plan(files('^2.1.3')).install_command).toBe('npm ci')
  })
  it('does not stop a build where it does not fit, and the plan says so', () => {
    const found = plan(files('^2.0.0'))
    expect(found.install_command).toBe('npm install')
    expect(source(found, 'install_command')).toContain('package-lock.json does not fit package.json (ms)')
  })
})

describe('single-page apps', () => {
  const site = { 'index.html': '<h1>a</h1>', 'about.html': '' }
  const spa = /try_files \$uri \$uri\.html \$uri\/ \/index\.html;/
  it.each([
    ['_redirects', '/*  /index.html  200'],
    ['netlify.toml', '[[redirects]]\nfrom = "/*"\nto = "/index.html"\nstatus = 200'],
    ['vercel.json', json({ rewrites: [{ source: '/(.*)', destination: '/index.html' }] })],
    ['firebase.json', json({ hosting: { rewrites: [{ source: '**', destination: '/index.html' }] } })],
    ['serve.json', json({ rewrites: [{ source: '**', destination: '/index.html' }] })],
    ['Caddyfile', ':80 {\n  try_files {path} /index.html\n  file_server\n}'],
    ['nginx.conf', 'location / { try_files $uri $uri/ /index.html; }'],
    ['Staticfile', 'pushstate: enabled'],
  ])('are told by %s', (file, text) => {
    expect(plan({ ...site, [file]: text }).dockerfile).toMatch(spa)
    expect(plan(site).dockerfile).not.toMatch(spa)
  })
  it('are told by a page that is one empty element, and by no other one', () => {
    const bundle = {
      'dist/index.html': '<div id="root"></div><script src="/a.js"></script>',
      'dist/a.js': '',
    }
    expect(plan(bundle).dockerfile).toMatch(spa)
    expect(plan({ ...bundle, 'dist/b.html': '' }).dockerfile).not.toMatch(spa)
  })
  it('are none where the site has a page for what is missing, or several pages', () => {
    const vite = {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
      'index.html': '',
    }
    expect(plan(vite).dockerfile).toMatch(spa)
    expect(plan({ ...vite, 'public/404.html': '' }).dockerfile).toContain('error_page 404 /404.html')
    expect(plan({ ...vite, 'vite.config.ts': "export default { appType: 'mpa' }" }).dockerfile).not.toMatch(
      spa,
    )
  })
  it("answer with SvelteKit's own page, and keep the front page that was rendered", () => {
    const found = plan({
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2' } }),
      'svelte.config.js':
        "import adapter from '@sveltejs/adapter-static'\nexport default { kit: { adapter: adapter({ fallback: '200.html' }) } }",
    })
    expect(found.dockerfile).toContain('$uri/ /200.html;')
    expect(found.dockerfile).toContain('index index.html index.htm /200.html;')
    expect(found.dockerfile).not.toContain('cp ')
  })
})

describe('folders', () => {
  it('are taken from the option that the framework reads', () => {
    const app = (name: string, file: string, text: string) =>
      plan({ 'package.json': json({ scripts: { build: 'x' }, dependencies: { [name]: '7' } }), [file]: text })
    const vite = "export default { vite: { build: { outDir: 'ignored' } }, outDir: './site' }"
    expect(source(app('astro', 'astro.config.mjs', vite), 'static_folder')).toBeTruthy()
    expect(app('astro', 'astro.config.mjs', vite).dockerfile).toContain('/app/site ')
    expect(
      app('@react-router/dev', 'react-router.config.ts', "export default { buildDirectory: 'out' }")
        .start_command,
    ).toBe('react-router-serve ./out/server/index.js')
  })
})

describe('a program that would end by design gets a server', () => {
  it.each([
    [
      'FastHTML',
      'python-fasthtml',
      'from fasthtml.common import *\napp, rt = fast_app()\n',
      'uvicorn main:app --host',
    ],
    [
      'aiohttp without run_app',
      'aiohttp',
      'from aiohttp import web\napp = web.Application()\n',
      'gunicorn main:app --bind 0.0.0.0:$PORT --worker-class aiohttp.GunicornWebWorker',
    ],
    [
      'aiohttp that runs itself',
      'aiohttp',
      'from aiohttp import web\napp = web.Application()\nweb.run_app(app)\n',
      'python main.py',
    ],
    ['bottle without run', 'bottle', 'import bottle\napp = bottle.Bottle()\n', 'gunicorn main:app'],
  ])('%s', (_, requirement, text, start) => {
    expect(plan({ 'requirements.txt': requirement, 'main.py': text }).start_command).toContain(start)
  })
})

describe('system libraries', () => {
  it.each([
    ['cairo', { 'requirements.txt': 'cairosvg', 'main.py': '' }, 'libcairo2'],
    [
      'a member of a workspace',
      {
        'uv.lock': '',
        'pyproject.toml': '[tool.uv.workspace]\nmembers = ["packages/*"]',
        'packages/db/pyproject.toml': '[project]\nname = "db"\ndependencies = ["psycopg2>=2.9"]',
        'main.py': '',
      },
      'libpq5',
    ],
    [
      'what the lockfile adds',
      {
        'uv.lock': '[[package]]\nname = "weasyprint"\n',
        'pyproject.toml': '[project]\nname = "a"',
        'main.py': '',
      },
      'libpango-1.0-0',
    ],
    [
      'poetry',
      { 'poetry.lock': '[[package]]\nname = "psycopg2"\n', 'pyproject.toml': '[tool.poetry]', 'main.py': '' },
      'libpq5',
    ],
  ])('of Python packages are installed: %s', (_, files, library) => {
    expect(finished(plan(files as unknown as Files))).toContain(library)
  })
  it('give Ruby a runtime for JavaScript, unless a gem is one', () => {
    const gems = { Gemfile: "gem 'rails'\ngem 'uglifier'\n", 'bin/rails': '', 'config.ru': '' }
    expect(plan(gems).dockerfile.match(/nodejs/g)).toHaveLength(2)
    expect(plan({ ...gems, Gemfile: `${gems.Gemfile}gem 'mini_racer'` }).dockerfile).not.toContain('nodejs')
  })
})

describe('scripts', () => {
  it.each([
    ['#!/usr/bin/env zsh', 'zsh start.sh', 'zsh'],
    ['#!/usr/bin/fish', 'fish start.sh', 'fish'],
    ['#!/bin/sh -eu', 'sh -eu start.sh', 'bash'],
    ['#!/usr/bin/env python3', 'python3 start.sh', 'python3'],
    ['no such line', 'bash start.sh', 'bash'],
  ])('run with what their first line names: %s', (first, start, packages) => {
    const found = plan({ 'start.sh': `${first}\n` })
    expect(found.start_command).toBe(start)
    expect(finished(found)).toMatch(new RegExp(`install-recommends [^&]*\\b${packages}\\b`))
  })
  it('bring their shell into the image of any stack', () => {
    const found = plan({ 'main.py': '', 'run.sh': '#!/bin/zsh\n', Procfile: 'web: ./run.sh' })
    expect(finished(found)).toMatch(/install-recommends zsh/)
  })
})

describe('Gradle without a whole wrapper', () => {
  const files = { 'build.gradle': "plugins { id 'org.springframework.boot' }", gradlew: '#!/bin/sh' }
  it('stands in for the wrapper that a build command calls', () => {
    const found = plan(files, { build_command: './gradlew bootJar' })
    expect(found.dockerfile).toContain('exec gradle')
    expect(found.dockerfile).toContain('FROM gradle:')
  })
  it('is left alone where the wrapper is whole, or nobody calls it', () => {
    const whole = {
      ...files,
      'gradle/wrapper/gradle-wrapper.jar': '',
      'gradle/wrapper/gradle-wrapper.properties': '',
    }
    expect(plan(whole, { build_command: './gradlew bootJar' }).dockerfile).not.toContain('exec gradle')
    expect(plan(files).dockerfile).not.toContain('exec gradle')
  })
})
