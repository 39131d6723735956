import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import { memoryTree } from '#server/builds/source-tree'

const json = (value: unknown) => JSON.stringify(value)
const plan = (files: Record<string, string>) => detect(memoryTree(files))
const node = { 'package.json': json({ scripts: { start: 'node a.js' } }), 'a.js': '' }
/** Rows of the explanation of one kind, as `value (source)`. */
const rows = (files: Record<string, string>, field: string) =>
  plan(files)
    .explanation.filter((row) => row.field === field)
    .map(({ value, source }) => `${value} (${source})`)

describe('a file that cannot be read is told', () => {
  it.each([
    ['railpack.json', '{"deploy": ', 'JSON'],
    ['nixpacks.toml', '[phases.setup\nnixPkgs = ["ffmpeg"]', 'TOML'],
    ['mise.toml', 'tools = {', 'TOML'],
    ['app.json', '{"cron": [', 'JSON'],
  ])('%s', (path, text, format) => {
    expect(rows({ ...node, [path]: text }, 'warning')).toEqual([
      `${path} has no effect: it cannot be read as ${format}. (${path})`,
    ])
    expect(rows({ ...node, [path]: ' \n' }, 'warning')).toEqual([])
  })
  it.each([
    ['Staticfile', 'root: [web\npushstate: enabled', 'YAML'],
    ['Staticfile', 'root: "web', 'YAML'],
    ['static.json', '{"root": "web"', 'JSON'],
  ])('%s of a site, which then sets nothing: %j', (path, text, format) => {
    const site = { 'index.html': '', 'web/index.html': '' }
    expect(rows({ ...site, [path]: text }, 'warning')).toEqual([
      `${path} has no effect: it cannot be read as ${format}. (${path})`,
    ])
    expect(plan({ ...site, [path]: text }).dockerfile).toBe(plan({ ...site, [path]: '' }).dockerfile)
    const tabs = '{\n\t"root": "web",\n}'
    for (const [name, good] of [
      ['Staticfile', '---\nroot: web # here\n'],
      ['static.json', tabs],
    ] as const) {
      expect(rows({ ...site, [name]: good }, 'warning')).toEqual([])
      expect(plan({ ...site, [name]: good }).explanation).toContainEqual(
        expect.objectContaining({ field: 'static_folder', value: 'web' }),
      )
    }
  })
})

describe('a Procfile without web', () => {
  it('is explained by what runs, not by a start command and a port that nothing has', () => {
    const files = { ...node, Procfile: 'worker: node work.js\n' }
    expect(plan(files)).toMatchObject({ web: false, start_command: null })
    expect(rows(files, 'start_command')).toEqual([])
    expect(rows(files, 'port')).toEqual([])
    expect(rows(files, 'web')).toEqual(['none: no process takes requests (Procfile)'])
    expect(rows({ ...node, Procfile: 'web: node a.js\nworker: node b.js\n' }, 'web')).toEqual([])
  })
})

describe('the plan says what of a file had no effect:', () => {
  it.each([
    [
      'railpack.json',
      json({
        $schema: 'x',
        provider: 'node',
        caches: { a: {} },
        deploy: { startCommand: 'node b.js', paths: ['x'], variables: { A: '1' } },
        steps: { build: { commands: ['true'], inputs: [] }, extra: { commands: ['x'] } },
      }),
      [
        'provider',
        'caches',
        'deploy.paths',
        'deploy.variables (set variables in the app)',
        'steps.build.inputs',
        'steps.extra.commands',
      ],
    ],
    [
      'nixpacks.toml',
      'providers = ["node"]\n[phases.setup]\nnixPkgs = ["ffmpeg"]\nnixOverlays = ["x"]\n[phases.build]\ncmds = ["true"]\n[start]\ncmd = "node b.js"\nrunImage = "x"\n[variables]\nA = "1"\n',
      ['providers', 'phases.setup.nixOverlays', 'start.runImage', 'variables (set variables in the app)'],
    ],
    [
      'mise.toml',
      '[tools]\nnode = "22"\n[env]\nA = "1"\n[tasks.build]\nrun = "x"\n',
      ['env (set variables in the app)', 'tasks'],
    ],
    [
      'app.json',
      json({
        name: 'a',
        addons: ['x'],
        env: { A: {} },
        formation: {},
        cron: [],
        scripts: { postdeploy: 'x', dokku: { predeploy: 'node m.js', postdeploy: 'y' } },
      }),
      [
        'addons',
        'env (set variables in the app)',
        'formation',
        'scripts.postdeploy',
        'scripts.dokku.postdeploy',
      ],
    ],
  ])('%s', (file, text, expected) => {
    expect(rows({ ...node, [file]: text }, 'ignored').sort()).toEqual(
      expected.map((one) => `${one} (${file})`).sort(),
    )
  })
  it('Caddyfile and Staticfile', () => {
    const site = { 'web/index.html': '' }
    expect(
      rows(
        { ...site, Caddyfile: ':80 {\n  root * web\n  header X-A b\n  file_server\n  redir /a /b\n}\n' },
        'ignored',
      ),
    ).toEqual(['header (Caddyfile)', 'redir (Caddyfile)'])
    expect(rows({ ...site, Staticfile: 'root: web\ndirectory: visible\n' }, 'ignored')).toEqual([
      'directory (Staticfile)',
    ])
    expect(plan({ ...site, Caddyfile: 'root * web\nfile_server\n' }).explanation).toContainEqual({
      field: 'static_folder',
      value: 'web',
      source: 'Caddyfile',
    })
  })
})

describe('commands of a file that stand beside those that are detected', () => {
  const scripts = {
    'package.json': json({ scripts: { build: 'node build.js', start: 'node b.js' } }),
    'b.js': '',
  }
  it.each([
    [
      'nixpacks.toml',
      '[phases.install]\ncmds = ["...", "node fetch.js"]\n[phases.build]\ncmds = ["node before.js", "...", "node after.js"]\n',
    ],
    [
      'railpack.json',
      json({
        steps: {
          install: { commands: ['...', { cmd: 'node fetch.js' }] },
          build: { commands: ['node before.js', '...', { cmd: 'node after.js', customName: 'after' }] },
        },
      }),
    ],
  ])('run with them, in the order of %s', (file, text) => {
    expect(plan({ ...scripts, [file]: text })).toMatchObject({
      install_command: 'npm install && node fetch.js',
      build_command: 'node before.js && npm run build && node after.js',
    })
  })
  it('are all there is where nothing is detected', () => {
    const only = (commands: unknown[]) =>
      plan({ ...node, 'railpack.json': json({ steps: { build: { commands } } }) }).build_command
    expect([only(['...', 'node a.js']), only(['...'])]).toEqual(['node a.js', null])
  })
  it('run once, however often a file has a place for them', () => {
    const commands = Array.from({ length: 50_000 }, () => '...')
    const text = json({ steps: { build: { commands: [...commands, 'node after.js'] } } })
    expect(plan({ ...scripts, 'railpack.json': text }).build_command).toBe('npm run build && node after.js')
  })
  it('are told where they are none: copies, paths and variables of a step', () => {
    const commands = ['node a.js', { src: '.', dest: '/x' }, { path: '/x/bin' }, { name: 'A', value: '1' }]
    const found = { ...node, 'railpack.json': json({ steps: { build: { commands } } }) }
    expect(plan(found).build_command).toBe('node a.js')
    expect(rows(found, 'ignored')).toEqual([
      'steps.build.commands: src (railpack.json)',
      'steps.build.commands: path (railpack.json)',
      'steps.build.commands: name (railpack.json)',
    ])
  })
})

describe('packages that a file names', () => {
  const image = (files: Record<string, string>) => plan({ ...node, ...files }).dockerfile
  it.each([
    [
      'railpack.json',
      json({ deploy: { aptPackages: ['ffmpeg'] }, buildAptPackages: ['libvips-dev'] }),
      ['ffmpeg', 'libvips-dev'],
    ],
    [
      'nixpacks.toml',
      '[phases.setup]\nnixPkgs = ["...", "poppler_utils"]\naptPkgs = ["jq"]\n',
      ['poppler-utils', 'jq'],
    ],
    [
      'nixpacks.toml',
      '[phases.setup]\nnixPkgs = ["busybox", "postgresql_16", "ffmpeg_7-full", "imagemagick7", "p7zip"]\n',
      ['busybox', 'postgresql-client', 'ffmpeg', 'imagemagick', 'p7zip-full'],
    ],
    ['mise.toml', '[tools]\nnode = "22"\njq = "latest"\n', ['jq']],
    ['.tool-versions', 'nodejs 22.1.0\npandoc 3.1\n', ['pandoc']],
    ['Aptfile', '# tools\nimagemagick\n', ['imagemagick']],
  ])('are installed: %s', (file, text, packages) => {
    for (const name of packages)
      expect(image({ [file]: text })).toMatch(new RegExp(`install-recommends [^&]*\\b${name} `))
    expect(rows({ ...node, [file]: text }, 'packages').join()).toContain(packages[0])
  })
  it('come from the image of a tool that has one, in its version', () => {
    const found = plan({ ...node, 'mise.toml': '[tools]\nnode = "22"\ngo = "1.24"\n' })
    expect(found.version).toBe('22')
    expect(
      found.dockerfile.match(/COPY --from=golang:1\.24-bookworm \/usr\/local\/go \/usr\/local\/go/g),
    ).toHaveLength(2)
    expect(found.dockerfile).toContain('/usr/local/go/bin:')
    expect(plan({ 'main.py': '', '.tool-versions': 'nodejs 22\n' }).dockerfile).toContain(
      'COPY --from=node:22-slim /usr/local/bin/node',
    )
  })
  it('choose the version of the language', () => {
    expect(plan({ ...node, 'nixpacks.toml': '[phases.setup]\nnixPkgs = ["nodejs_20"]\n' }).version).toBe('20')
    expect(
      plan({ 'main.py': '', 'nixpacks.toml': '[phases.setup]\nnixPkgs = ["python311"]\n' }).version,
    ).toBe('3.11')
    expect(plan({ ...node, 'railpack.json': json({ packages: { node: '20' } }) }).version).toBe('20')
  })
  it('are warned about where nothing brings them, and never reach a command as they are', () => {
    expect(rows({ ...node, 'mise.toml': '[tools]\nterraform = "1"\n' }, 'warning')).toEqual([
      expect.stringContaining('terraform is not installed'),
    ])
    const files = { 'railpack.json': json({ deploy: { aptPackages: ['jq; curl evil', '-o=x'] } }) }
    expect(image(files)).not.toContain('evil')
    expect(rows({ ...node, ...files }, 'warning')).toHaveLength(2)
  })
})

describe('a file that only names a start command is enough', () => {
  it.each([
    ['railpack.json', json({ deploy: { startCommand: './server --port $PORT' } })],
    ['nixpacks.toml', '[start]\ncmd = "./server --port $PORT"'],
    ['railway.json', json({ deploy: { startCommand: './server --port $PORT' } })],
    ['portreeve.json', json({ start_command: './server --port $PORT' })],
    ['Procfile', 'web: ./server --port $PORT'],
  ])('%s', (file, text) => {
    const found = plan({ [file]: text, server: '' })
    expect(found).toMatchObject({ stack: 'procfile', start_command: './server --port $PORT' })
    expect(found.dockerfile).toContain('CMD ["/bin/sh", "-c", "exec ./server --port $PORT"]')
  })
  it('with the tools that it names', () => {
    const found = plan({
      'mise.toml': '[tools]\nnode = "22"',
      'railpack.json': json({ deploy: { startCommand: 'node x.mjs' } }),
      'x.mjs': '',
    })
    expect(found.dockerfile.slice(found.dockerfile.lastIndexOf('\nFROM'))).toContain(
      'COPY --from=node:22-slim',
    )
  })
})
