import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import type { BuildPlan } from '#server/builds/plan'
import { memoryTree } from '#server/builds/source-tree'

type Files = Record<string, string>
const json = (value: unknown) => JSON.stringify(value)
const plan = (files: Files): BuildPlan => detect(memoryTree(files))
const finished = ({ dockerfile }: BuildPlan) => dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
const sourceOf = ({ explanation }: BuildPlan, field: string) =>
  explanation.find((row) => row.field === field)?.source

describe('Nx workspaces', () => {
  const root = (more: Record<string, unknown> = {}) => ({
    'nx.json': '{}',
    'package.json': json({ name: 'acme', devDependencies: { nx: '21' }, ...more }),
  })
  it.each([
    [
      'Rsbuild, which Nx finds by its configuration',
      {
        ...root(),
        'apps/shop/package.json': json({ name: '@acme/shop' }),
        'apps/shop/rsbuild.config.ts':
          "export default { output: { distPath: { root: '../../dist/apps/shop' } } }",
      },
      '@acme/shop',
      '/app/dist/apps/shop',
    ],
    [
      'Astro',
      {
        ...root(),
        'apps/docs/project.json': json({ name: 'docs', projectType: 'application' }),
        'apps/docs/astro.config.mjs': 'export default {}',
      },
      'docs',
      '/app/apps/docs/dist',
    ],
    [
      'a server that Vite bundles, with a page beside it',
      {
        ...root(),
        'apps/backend/package.json': json({ name: 'backend' }),
        'apps/backend/vite.config.ts':
          "export default { build: { ssr: 'src/entry.ts', outDir: '../../dist/apps/backend' } }",
      },
      'backend',
      '"dist/apps/backend/entry.js"',
    ],
    [
      'the list of projects that Nx read once',
      {
        ...root({ scripts: { start: 'nx serve', build: 'nx build' } }),
        'workspace.json': json({
          projects: {
            todo: {
              root: 'apps/todo',
              projectType: 'application',
              architect: {
                build: { builder: '@nrwl/web:build', options: { outputPath: 'dist/apps/todo' } },
              },
            },
          },
        }),
        'apps/todo/src/index.html': '',
      },
      'todo',
      '/app/dist/apps/todo',
    ],
  ])('build what their tools say: %s', (_, files, name, text) => {
    const found = plan(files as unknown as Files)
    expect(found.build_command).toBe(`npx nx build ${name}`)
    expect(found.dockerfile).toContain(text)
  })

  const server = (executor: string, options: Record<string, unknown>) =>
    plan({
      ...root(),
      'apps/api/project.json': json({
        name: 'api',
        projectType: 'application',
        targets: {
          build: { executor, options: { outputPath: 'dist/apps/api', ...options } },
          serve: { executor: '@nx/js:node' },
        },
      }),
    }).start_command
  it.each([
    ['@nx/vite/plugin', { 'vite.config.mjs': 'export default {}', 'index.html': '' }],
    ['@nx/next/plugin', { 'next.config.js': 'module.exports = {}' }],
    ['@nx/webpack', { 'webpack.config.js': "module.exports = { target: 'node' }" }],
  ])('are built by the target that the options of a plugin name: %s', (plugin, files) => {
    const options = (name: string, key = 'buildTargetName') => [
      { plugin: '@nx/jest/plugin', options: { targetName: 'test' } },
      { plugin, options: { [key]: name } },
    ]
    const built = (plugins: unknown) =>
      plan({
        'nx.json': json({ plugins }),
        'package.json': json({ devDependencies: { nx: '20', vite: '6', next: '15', react: '19' } }),
        'apps/desk/package.json': json({ name: '@acme/desk' }),
        ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`apps/desk/${name}`, text])),
      }).build_command
    expect(built(options('compile'))).toBe('npx nx run @acme/desk:compile')
    expect(built([{ plugin }])).toBe('npx nx build @acme/desk')
    // What does not belong into a command is not put there.
    expect(built(options('compile; reboot'))).toBe('npx nx build @acme/desk')
  })
  it('start a server by the file that its executor writes', () => {
    const main = 'apps/api/src/server.ts'
    expect(server('@nx/esbuild:esbuild', { main })).toBe('node dist/apps/api/server.js')
    expect(server('@nx/esbuild:esbuild', { main, outputFileName: 'index.js' })).toBe(
      'node dist/apps/api/index.js',
    )
    expect(server('@nx/webpack:webpack', { main })).toBe('node dist/apps/api/main.js')
    expect(server('@nx/js:tsc', { main })).toBe('node dist/apps/api/src/server.js')
    expect(server('@nx/esbuild:esbuild', { outputFileName: '../../x.js; id' })).toBe(
      'node dist/apps/api/main.js',
    )
  })
})

describe('the folder of a site', () => {
  it('is looked for after the build although the page of the source lies in the root', () => {
    const vite = plan({
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
      'index.html': '<h1>a</h1>',
      'vite.config.js':
        "const where = ['web', 'root'].join('-')\nexport default { build: { outDir: where } }",
    })
    expect(vite.dockerfile).toContain('The build left the site in')
    expect(vite.dockerfile).toContain('! -path ./index.html')
  })
})

it('a build by a tool that makes pages leaves a site, and any other build does not', () => {
  const built = (build: string) => ({ 'package.json': json({ scripts: { build } }), 'pages/a.html': '' })
  expect(plan(built('gulp build')).dockerfile).toContain('COPY --from=build /app/dist /srv/site')
  expect(() => plan(built('tsc -p .'))).toThrow('nothing says how to start it')
})

describe("npm's lockfile that is out of step", () => {
  const lock = (version: number, more: Record<string, unknown>) =>
    json({ name: 'a', lockfileVersion: version, ...more })
  const manifest = { scripts: { start: 'node a.js' }, dependencies: { ms: '^2.1.3' } }
  it.each([
    [
      'of a member of the workspace',
      {
        'package.json': json({ workspaces: ['web'], scripts: { start: 'node web/a.js' } }),
        'web/package.json': json({ name: 'web', dependencies: { ms: '^2.1.3' } }),
        'package-lock.json': lock(3, { packages: { '': {}, web: { version: '1.0.0' } } }),
      },
    ],
    [
      'that names a package and has no place for it',
      {
        'package.json': json(manifest),
        'package-lock.json': lock(3, { packages: { '': { dependencies: { ms: '^2.1.3' } } } }),
      },
    ],
    [
      'of npm 6',
      { 'package.json': json(manifest), 'package-lock.json': lock(1, { dependencies: { debug: {} } }) },
    ],
  ])('does not stop a build: %s', (_, files) => {
    const found = plan(files as unknown as Files)
    expect(found.install_command).toBe('npm install')
    expect(sourceOf(found, 'install_command')).toContain('package-lock.json does not fit package.json (ms)')
  })
  it.each([
    [
      'a workspace whose members name one another',
      {
        'package.json': json({ workspaces: ['web', 'lib'], scripts: { start: 'node web/a.js' } }),
        'web/package.json': json({ name: 'web', dependencies: { ms: '^2.1.3', lib: '*' } }),
        'lib/package.json': json({ name: 'lib' }),
        'package-lock.json': lock(3, {
          packages: {
            '': { workspaces: ['web', 'lib'] },
            web: { dependencies: { ms: '^2.1.3', lib: '*' } },
            lib: {},
            'web/node_modules/ms': { version: '2.1.3' },
            'node_modules/lib': { resolved: 'lib', link: true },
          },
        }),
      },
    ],
    [
      'an optional package that this system does not get',
      {
        'package.json': json({
          scripts: { start: 'node a.js' },
          optionalDependencies: { fsevents: '^2' },
        }),
        'package-lock.json': lock(3, { packages: { '': { optionalDependencies: { fsevents: '^2' } } } }),
      },
    ],
    [
      'a lockfile of npm 6',
      { 'package.json': json(manifest), 'package-lock.json': lock(1, { dependencies: { ms: {} } }) },
    ],
  ])('is insisted on where it fits: %s', (_, files) => {
    expect(plan(files as unknown as Files).install_command).toBe('npm ci')
  })
})

describe('the fallback of a single-page app', () => {
  const site = { 'index.html': '<h1>a</h1>', 'about.html': '' }
  const spa = 'try_files $uri $uri.html $uri/ /index.html;'
  it.each([
    ['vercel.json', json({ routes: [{ handle: 'filesystem' }, { src: '/(.*)', dest: '/index.html' }] })],
    ['now.json', json({ routes: [{ src: '/.*', dest: 'index.html' }] })],
    ['firebase.json', json({ hosting: [{ rewrites: [{ source: '**', destination: '/index.html' }] }] })],
    ['.htaccess', 'RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ index.html [L]\n'],
    ['.htaccess', 'RewriteRule . /index.html [L]\n'],
    ['.htaccess', 'FallbackResource /index.html\n'],
    ['.do/app.yaml', 'static_sites:\n- name: web\n  catchall_document: index.html\n'],
    [
      'render.yaml',
      'services:\n- type: web\n  routes:\n  - type: rewrite\n    source: /*\n    destination: /index.html\n',
    ],
    ['nginx.conf.template', 'location / { try_files $uri /index.html; }'],
    ['Caddyfile', ':80\nfile_server\n@404 not file\nrewrite @404 /index.html'],
    ['web.config', '<rule><action type="Rewrite" url="/index.html" /></rule>'],
  ])('is declared by %s: %j', (file, text) => {
    expect(plan({ ...site, [file]: text }).dockerfile).toContain(spa)
  })
  it.each([
    ['.htaccess', 'RewriteRule ^old$ /index.html [R=301]\n# FallbackResource /index.html\n'],
    [
      'render.yaml',
      'services:\n- routes:\n  - type: redirect\n    source: /*\n    destination: /index.html\n',
    ],
    ['vercel.json', json({ routes: [{ src: '/api/(.*)', dest: '/index.html' }] })],
    ['Caddyfile', ':80\nfile_server\nrewrite /old /new'],
  ])('is not taken from %s: %j', (file, text) => {
    expect(plan({ ...site, [file]: text }).dockerfile).not.toContain(spa)
  })
})

describe('a program that would end by design', () => {
  it('gets the server of its kind: Falcon over ASGI', () => {
    const asgi = { 'requirements.txt': 'falcon', 'main.py': 'import falcon.asgi\napp = falcon.asgi.App()\n' }
    expect(plan(asgi).start_command).toBe('uvicorn main:app --host 0.0.0.0 --port $PORT')
    const wsgi = { 'requirements.txt': 'falcon', 'main.py': 'import falcon\napp = falcon.App()\n' }
    expect(plan(wsgi).start_command).toBe('gunicorn main:app --bind 0.0.0.0:$PORT')
  })
  it('gets the server of its kind: a class of Sinatra', () => {
    const app = "require 'sinatra/base'\nclass Shop < Sinatra::Base\n  get('/') { 'x' }\nend\n"
    const files = (text: string) => ({ Gemfile: "gem 'sinatra'\n", 'app.rb': text })
    expect(plan(files(app)).start_command).toContain(
      'bundle exec ruby -r ./app.rb -e \'Shop.run! bind: "0.0.0.0"',
    )
    expect(plan(files(`${app}Shop.run!\n`)).start_command).toBe('bundle exec ruby app.rb -o 0.0.0.0 -p $PORT')
  })
})

describe('an app of Node that its file only exports', () => {
  const express = "const app = require('express')(); module.exports = app\n"
  const app = (text: string, more: Files = {}, fields = {}) =>
    plan({
      'package.json': json({ main: 'app.js', dependencies: { express: '5' }, ...fields }),
      'app.js': text,
      ...more,
    })
  it('is served by a server for handlers of requests, which is in the image', () => {
    const found = app(express)
    expect(found.start_command).toBe('srvx serve --prod --host 0.0.0.0 --port $PORT --entry ./app.js')
    expect(finished(found)).toContain('npm install --global srvx@1')
    const hono = plan({
      'package.json': json({ type: 'module', dependencies: { hono: '4' } }),
      'src/index.ts': 'const app = new Hono()\nexport default app\n',
    })
    expect(hono.start_command).toContain('--entry ./src/index.ts')
    expect(app(express, {}, { scripts: { start: 'node app.js' } }).start_command).toContain('srvx')
  })
  it('is started by its own starter where it has one', () => {
    expect(app(express, { 'bin/www': "require('../app').listen(process.env.PORT)" }).start_command).toBe(
      'node bin/www',
    )
  })
  it.each([
    `${express}app.listen(process.env.PORT)\n`,
    `${express}if (require.main === module) start()\n`,
    "const app = require('./lib/app')\nmodule.exports = app\n",
    "require('express')()\n",
  ])('is left alone where it serves by itself, or is made elsewhere: %j', (text) => {
    expect(app(text).start_command).toBe('node app.js')
  })
})

describe('a workspace of Python', () => {
  const files = {
    'uv.lock': '',
    'pyproject.toml': '[project]\nname = "root"\n[tool.uv.workspace]\nmembers = ["services/*"]\n',
    'services/api/pyproject.toml': '[project]\nname = "api"\ndependencies = ["fastapi", "psycopg2"]\n',
    'services/api/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
    'services/lib/pyproject.toml': '[project]\nname = "lib"\n',
  }
  it('is started by the member that can be, in its folder, with what it needs', () => {
    const found = plan(files)
    expect(found).toMatchObject({
      framework: 'fastapi',
      start_command: 'uvicorn main:app --host 0.0.0.0 --port $PORT',
    })
    expect(finished(found)).toContain('WORKDIR /app/services/api')
    expect(finished(found)).toContain('libpq5')
    expect(found.install_command).toContain('--all-packages')
  })
  it('has the packages of its folders before they are installed', () => {
    const local = (line: string) =>
      plan({
        'poetry.lock': '',
        'pyproject.toml': `[tool.poetry]\nname = "a"\n[tool.poetry.dependencies]\n${line}\n`,
        'main.py': '',
      }).dockerfile
    const untilInstalled = (dockerfile: string) => dockerfile.slice(0, dockerfile.indexOf('poetry install'))
    expect(untilInstalled(local('lib = { path = "libs/lib", develop = true }'))).toContain('COPY . ')
    expect(untilInstalled(local('flask = "^3"'))).not.toContain('COPY . ')
  })
  it('that stands on the maps of Django gets their libraries', () => {
    const django = (apps: string) =>
      plan({
        'requirements.txt': 'django\npsycopg[binary]\n',
        'manage.py': 'django',
        'shop/settings.py': `INSTALLED_APPS = [${apps}]`,
        'shop/wsgi.py': '',
      })
    expect(finished(django("'django.contrib.gis'"))).toContain('gdal-bin')
    expect(finished(django("'django.contrib.admin'"))).not.toContain('gdal-bin')
  })
})

describe('the first line of a script', () => {
  it.each([
    ['#!/usr/bin/env -S zsh -euo pipefail', 'zsh -euo pipefail start.sh', 'zsh'],
    ['#!/bin/zsh -e -o pipefail', 'zsh -e -o pipefail start.sh', 'zsh'],
    ['#!/usr/bin/yash', 'yash start.sh', 'yash'],
    ['#!/bin/busybox sh', 'busybox sh start.sh', 'busybox'],
  ])('counts with its options: %s', (first, start, name) => {
    const found = plan({ 'start.sh': `${first}\n` })
    expect(found.start_command).toBe(start)
    expect(finished(found)).toMatch(new RegExp(`install-recommends [^&]*\\b${name}\\b`))
  })
  it('counts for scripts that scripts run, and those of package.json', () => {
    const inner = plan({ 'start.sh': '#!/bin/bash\nexec ./inner\n', inner: '#!/bin/zsh\n' })
    expect(finished(inner)).toMatch(/install-recommends [^&]*\bzsh\b/)
    const npm = plan({
      'package.json': json({ scripts: { start: 'npm run go', go: 'bin/serve' } }),
      'bin/serve': '#!/usr/bin/env fish\n',
    })
    expect(finished(npm)).toMatch(/install-recommends fish/)
  })
  it('that names what nothing brings is a warning, and is not run by another shell', () => {
    const found = plan({ 'start.sh': '#!/usr/bin/env pwsh\n' })
    expect(found.start_command).toBe('pwsh start.sh')
    expect(found.explanation).toContainEqual({
      field: 'warning',
      value: expect.stringContaining('pwsh is not installed'),
      source: 'start.sh',
    })
    const brought = plan({ 'start.sh': '#!/usr/bin/env deno\n', 'mise.toml': '[tools]\ndeno = "2"\n' })
    expect(sourceOf(brought, 'warning')).not.toBe('start.sh')
  })
})

it('a package manager that a file of pm2 starts is in the finished image', () => {
  const files = (script: string) => ({
    'package.json': json({
      packageManager: 'pnpm@9.15.0',
      scripts: { start: 'pm2-runtime ecosystem.config.js' },
      dependencies: { pm2: '6' },
    }),
    'ecosystem.config.js': `module.exports = { apps: [{ name: 'a', script: '${script}', args: 'run serve' }] }`,
  })
  expect(finished(plan(files('pnpm')))).toContain('npm install --global pnpm@9.15.0')
  expect(finished(plan(files('server.js')))).not.toContain('pnpm')
})

it('a version with a prefix of mise is the newest that begins with it', () => {
  const files = { 'package.json': json({ scripts: { start: 'node a.js' } }), 'a.js': '' }
  expect(plan({ ...files, '.tool-versions': 'nodejs prefix:20\n' }).version).toBe('20')
})

it('a start command whose program does not exist is told as such, not as a module that Node does not find', () => {
  const files = { 'package.json': json({ scripts: { start: 'pm3 start a.js' } }), 'a.js': '' }
  const image = finished(plan(files))
  expect(image.indexOf('ENTRYPOINT []')).toBeGreaterThan(0)
  expect(image.indexOf('ENTRYPOINT []')).toBeLessThan(image.indexOf('CMD ["pm3"'))
})
