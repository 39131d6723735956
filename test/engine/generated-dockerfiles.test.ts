import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { detect } from '#server/builds/detect'
import { defaultDockerignore } from '#server/builds/dockerignore'
import { openTree } from '#server/builds/source-tree'
import { newId } from '#server/kernel/ids'
import type { Engine, LogLine } from '#server/platform/engine/engine'
import { testDocker, testEngine } from '#test/support/engine-images'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

const ids = { app_id: newId('app'), project_id: newId('prj') }
const network = `test-${ids.project_id}`
const calm = new AbortController().signal
const GIB = 1024 ** 3
const docker = testDocker()
const folders: string[] = []
let engine: Engine

/** A small repository, and what its running app must answer at each path. */
interface Sample {
  files: Record<string, string>
  stack: string
  answers: Record<string, string | RegExp>
  /** Files that the image must and must not hold. */
  holds?: string[]
  lacks?: string[]
  /**
   * What the install prints: a second build with another source must not print it, because the packages are a
   * layer of their own.
   */
  installs?: RegExp
}

const NODE_SERVER =
  "require('node:http').createServer((_, answer) => answer.end(`node as ${process.getuid()}`)).listen(process.env.PORT)\n"

/** A server that needs a package. */
const SERVER_WITH_PACKAGE =
  "const ms = require('ms')\nrequire('node:http').createServer((_, answer) => answer.end(`${ms('1 min')} as ${process.getuid()}`)).listen(process.env.PORT)\n"
const packaged = (more: Record<string, unknown>) =>
  JSON.stringify({
    name: 'packaged',
    version: '1.0.0',
    scripts: { start: 'node index.js' },
    dependencies: { ms: '2.1.3' },
    ...more,
  })

const SAMPLES: Record<string, Sample> = {
  'a Node server with a package from npm': {
    files: { 'package.json': packaged({}), 'index.js': SERVER_WITH_PACKAGE },
    stack: 'node',
    answers: { '/': '60000 as 10001' },
    installs: /added \d+ package/,
  },
  'a Node server with pnpm': {
    files: {
      'package.json': packaged({ packageManager: 'pnpm@9.15.0' }),
      'index.js': SERVER_WITH_PACKAGE,
    },
    stack: 'node',
    answers: { '/': '60000 as 10001' },
    installs: /\+ ms 2\.1\.3/,
  },
  'a Node server with the classic Yarn': {
    files: {
      'package.json': packaged({}),
      'yarn.lock': '# yarn lockfile v1\n\n\nms@2.1.3:\n  version "2.1.3"\n',
      'index.js': SERVER_WITH_PACKAGE,
    },
    stack: 'node',
    answers: { '/': '60000 as 10001' },
    installs: /\[4\/4\]/,
  },
  'a Node server with Yarn 4': {
    files: {
      'package.json': packaged({ packageManager: 'yarn@4.9.1' }),
      '.yarnrc.yml': 'nodeLinker: node-modules\n',
      'index.js': SERVER_WITH_PACKAGE,
    },
    stack: 'node',
    answers: { '/': '60000 as 10001' },
    installs: /YN0000/,
  },
  'a workspace of npm whose server uses a package beside it': {
    files: {
      'package.json': '{"name":"root","private":true,"workspaces":["apps/*","packages/*"]}',
      'packages/greeting/package.json': '{"name":"greeting","version":"1.0.0","main":"index.js"}',
      'packages/greeting/index.js': "module.exports = 'workspace'\n",
      'apps/server/package.json':
        '{"name":"server","version":"1.0.0","scripts":{"start":"node index.js"},"dependencies":{"greeting":"1.0.0","ms":"2.1.3"}}',
      'apps/server/index.js':
        "const text = `${require('greeting')} ${require('ms')('1 min')}`\nrequire('node:http').createServer((_, answer) => answer.end(text)).listen(process.env.PORT)\n",
    },
    stack: 'node',
    answers: { '/': 'workspace 60000' },
    installs: /added \d+ package/,
  },
  "a Node server with Yarn 4 and Plug'n'Play": {
    files: {
      'package.json': packaged({ packageManager: 'yarn@4.9.1' }),
      '.yarnrc.yml': 'enableTelemetry: false\n',
      'index.js': SERVER_WITH_PACKAGE,
    },
    stack: 'node',
    answers: { '/': '60000 as 10001' },
  },
  'a workspace of pnpm whose server uses a package that is built first': {
    files: {
      'package.json': '{"name":"root","private":true,"packageManager":"pnpm@10.18.3"}',
      'pnpm-workspace.yaml': 'packages:\n  - apps/*\n  - packages/*\n',
      'packages/greeting/package.json':
        '{"name":"@acme/greeting","version":"1.0.0","main":"dist/index.js","scripts":{"build":"mkdir -p dist && cp index.js dist/"}}',
      'packages/greeting/index.js': "module.exports = 'built workspace'\n",
      'apps/api/package.json':
        '{"name":"@acme/api","version":"1.0.0","scripts":{"build":"node -e \\"require(\'node:fs\').writeFileSync(\'text.json\', JSON.stringify(require(\'@acme/greeting\')))\\"","start":"node index.js"},"dependencies":{"@acme/greeting":"workspace:*"}}',
      'apps/api/index.js':
        "require('node:http').createServer((_, answer) => answer.end(require('./text.json'))).listen(process.env.PORT)\n",
    },
    stack: 'node',
    answers: { '/': 'built workspace' },
  },
  'a Next.js app with a bundle of its own': {
    files: {
      'package.json':
        '{"name":"shop","private":true,"scripts":{"dev":"next dev","build":"next build","start":"next start"},"dependencies":{"next":"16.4.6","react":"19.3.1","react-dom":"19.3.1"}}',
      'next.config.mjs': "export default { output: 'standalone' }\n",
      'public/robots.txt': 'robots',
      'app/layout.jsx':
        'export default function Layout({ children }) { return <html><body>{children}</body></html> }\n',
      'app/page.jsx':
        "export const dynamic = 'force-dynamic'\nexport default function Page() { return <h1>{`shop as ${process.getuid()}`}</h1> }\n",
    },
    stack: 'node',
    answers: { '/': /<h1>shop as 10001<\/h1>/, '/robots.txt': 'robots' },
    lacks: ['/app/app/page.jsx'],
  },
  'a page that Vite builds, with its own addresses': {
    files: {
      'package.json':
        '{"name":"page","private":true,"type":"module","scripts":{"dev":"vite","build":"vite build"},"devDependencies":{"vite":"5.4.19"}}',
      'index.html': '<!doctype html>\n<h1>page</h1>\n',
      'public/robots.txt': 'robots',
    },
    stack: 'node',
    answers: {
      '/': '<!doctype html>\n<h1>page</h1>',
      '/some/address': '<!doctype html>\n<h1>page</h1>',
      '/robots.txt': 'robots',
    },
    installs: /added \d+ package/,
  },
  'a Node server without packages': {
    files: {
      'package.json': '{"name":"plain","scripts":{"start":"node index.js"},"engines":{"node":"22"}}',
      'index.js': NODE_SERVER,
    },
    stack: 'node',
    answers: { '/': 'node as 10001' },
  },
  'a Node server that is built first, with a Procfile': {
    files: {
      'package.json': '{"name":"built","scripts":{"build":"mkdir -p out && cp source.js out/server.js"}}',
      'source.js': NODE_SERVER,
      Procfile: 'web: node out/server.js $UNSET\n',
      '.env': 'SECRET=canary',
    },
    stack: 'node',
    answers: { '/': 'node as 10001' },
    holds: ['/app/out/server.js'],
    lacks: ['/app/.env'],
  },
  'a static site with a page for what is missing': {
    files: {
      'index.html': '<h1>front</h1>',
      'about.html': '<h1>about</h1>',
      'assets/a b.txt': 'asset',
    },
    stack: 'static',
    answers: {
      '/': '<h1>front</h1>',
      '/about.html': '<h1>about</h1>',
      '/assets/a%20b.txt': 'asset',
    },
  },
  'a Python server of the standard library': {
    files: {
      'main.py': [
        'import os',
        'from http.server import BaseHTTPRequestHandler, HTTPServer',
        '',
        'class Page(BaseHTTPRequestHandler):',
        '    def do_GET(self):',
        '        self.send_response(200)',
        '        self.end_headers()',
        '        self.wfile.write(f"python as {os.getuid()}".encode())',
        '',
        "HTTPServer(('0.0.0.0', int(os.environ['PORT'])), Page).serve_forever()",
        '',
      ].join('\n'),
    },
    stack: 'python',
    answers: { '/': 'python as 10001' },
  },
  'a Go server of the standard library': {
    files: {
      'go.mod': 'module example.com/hello\n\ngo 1.22\n',
      'main.go': [
        'package main',
        '',
        'import (',
        '\t"fmt"',
        '\t"net/http"',
        '\t"os"',
        ')',
        '',
        'func main() {',
        '\thttp.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "go as %d", os.Getuid()) })',
        '\tif err := http.ListenAndServe(":"+os.Getenv("PORT"), nil); err != nil {',
        '\t\tpanic(err)',
        '\t}',
        '}',
        '',
      ].join('\n'),
    },
    stack: 'go',
    answers: { '/': 'go as 10001' },
  },
  'a program of which a file names no more than how it starts, and its tool': {
    files: {
      'railpack.json': '{"deploy":{"startCommand":"node serve.mjs"}}',
      'mise.toml': '[tools]\nnode = "22"\n',
      'serve.mjs':
        "import { createServer } from 'node:http'\ncreateServer((_, answer) => answer.end(`started as ${process.getuid()}`)).listen(process.env.PORT)\n",
    },
    stack: 'procfile',
    answers: { '/': 'started as 10001' },
  },
  'a PHP page': {
    files: { 'index.php': "<?php echo 'php as ' . posix_getuid();\n" },
    stack: 'php',
    answers: { '/': 'php as 10001' },
  },
  "a PHP page with Heroku's Procfile": {
    files: {
      'www/index.php': "<?php echo 'php as ' . posix_getuid();\n",
      'web/index.php': '<?php echo 1;',
      Procfile: 'web: heroku-php-apache2 www/\n',
    },
    stack: 'php',
    answers: { '/': 'php as 10001' },
  },
}

function repository(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-generated-'))
  folders.push(folder)
  for (const [path, text] of Object.entries({ ...files, '.dockerignore': defaultDockerignore() })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

async function buildImage(
  context: string,
  dockerfile: string,
  log: string[] = [],
  mount_scope = 'app_test',
): Promise<string> {
  const tag = `portreeve-test/generated:${newId('rel').toLowerCase()}`
  const limits = { cpus: 2, memory_bytes: 2 * GIB, timeout_ms: 240_000 }
  try {
    const image = await engine.buildImage(
      {
        context,
        dockerfile,
        tag,
        labels: { project: ids.project_id },
        build_args: {},
        secrets: {},
        no_cache: false,
        cache_scope: 'prj_test',
        mount_scope,
        limits,
        onLog: ({ text }) => log.push(text),
      },
      calm,
    )
    return image.id
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${log.slice(-30).join('\n')}\n${dockerfile}`, {
      cause: error,
    })
  }
}

async function printed(instance_id: string): Promise<string> {
  const lines: LogLine[] = []
  for await (const line of engine.logs(instance_id, { tail: 20 })) lines.push(line)
  return lines.map(({ text }) => text).join('\n')
}

beforeAll(async () => {
  engine = testEngine()
  await engine.ensureNetwork(network, { project: ids.project_id })
})
afterAll(async () => {
  await engine.removeLabelled({ project: ids.project_id })
  for (const image of await engine.listImages({ project: ids.project_id })) await engine.removeImage(image.id)
  await engine.removeNetwork(network)
  await engine.close()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe('a generated Dockerfile builds, and its image serves without being root:', () => {
  test.each(Object.entries(SAMPLES))(
    '%s',
    async (_, { files, stack, answers, holds = [], lacks = [], installs }) => {
      // An engine that has run this before would take the installation from its cache.
      const manifest = files['package.json']?.replace('{', `{"description":"${newId('rel')}",`)
      const context = repository({ ...files, ...(manifest ? { 'package.json': manifest } : {}) })
      const plan = detect(await openTree(context))
      expect(plan.stack).toBe(stack)
      const log: string[] = []
      const image = await buildImage(context, plan.dockerfile, log)
      const release_id = newId('rel')
      const [instance] = await engine.ensureRelease(
        testWorkload({
          project_id: ids.project_id,
          release_id,
          image,
          environment: { PORT: String(plan.port) },
          network,
          limits: { cpus: 1, memory_bytes: 256 * 1024 ** 2, pids: 200 },
          stop_grace_s: 5,
        }),
        calm,
      )
      try {
        for (const [path, expected] of Object.entries(answers)) {
          let body = ''
          const served = poll(async () => {
            const answer = await fetch(`http://${instance!.address}:${plan.port}${path}`).catch(
              () => undefined,
            )
            body = (await answer?.text()) ?? ''
            return answer?.status === 200
          })
          await served.catch(async (error: Error) => {
            throw new Error(
              `${path}: ${error.message}; last answer ${body.slice(0, 200)}\n${await printed(instance!.id)}`,
            )
          })
          if (typeof expected === 'string') expect(body.trim()).toBe(expected)
          else expect(body).toMatch(expected)
        }
        const { Config } = await docker.getContainer(instance!.id).inspect()
        expect(Config.User).toMatch(/^[1-9]\d*(:[1-9]\d*)?$/)
        for (const path of holds) expect(await imageHas(image, path)).toBe(true)
        for (const path of lacks) expect(await imageHas(image, path)).toBe(false)
      } finally {
        await engine.removeRelease(release_id, 1)
      }
      if (!installs) return
      expect(log.join('\n')).toMatch(installs)
      writeFileSync(join(context, 'notes.md'), 'changed')
      const again: string[] = []
      await buildImage(context, plan.dockerfile, again)
      expect(again.join('\n')).not.toMatch(installs)
    },
    300_000,
  )
})

const site = (build: string, output?: string) => ({
  'package.json': JSON.stringify({
    name: 'site',
    scripts: { build },
    ...(output === undefined ? {} : { dependencies: { [output]: '1' } }),
  }),
  'public/index.html': '<h1>template</h1>',
  // A step that the engine has in its cache prints nothing.
  'new-each-time.txt': newId('run'),
})

describe('the folder of a site that a build leaves', () => {
  const planned = async (files: Record<string, string>) => {
    const context = repository(files)
    // Without packages of the framework, which the build of these samples does not use.
    const plan = detect(await openTree(context), { install_command: 'true' })
    return { context, plan }
  }

  test('is found where the build wrote it, although another one was expected', async () => {
    const { context, plan } = await planned(
      site('mkdir -p packages/out && echo made > packages/out/index.html', '@rsbuild/core'),
    )
    expect(plan.explanation).toContainEqual(
      expect.objectContaining({ field: 'static_folder', value: 'dist' }),
    )
    const log: string[] = []
    const image = await buildImage(context, plan.dockerfile, log)
    expect(log.join('\n')).toContain('The build left the site in packages/out, which is taken for dist.')
    expect(await imageHas(image, '/srv/site/index.html')).toBe(true)
  }, 120_000)

  test('is told by its name when the build left none: neither a template nor a command is taken for it', async () => {
    const { context, plan } = await planned(site('true', '@rsbuild/core'))
    await expect(buildImage(context, plan.dockerfile)).rejects.toMatchObject({
      cause: { message: 'The build left no folder `dist`.' },
    })
  }, 120_000)
})

describe('what a tool of the build keeps in its cache', () => {
  test('is there for the next build of the app with a changed file, for no other app, and not in the image', async () => {
    const build = [
      "const { existsSync, mkdirSync, writeFileSync } = require('node:fs')",
      "for (const folder of ['node_modules/.cache', '.next/cache', '/root/.cache/tool', '/root/.npm/tool']) {",
      '  console.log(folder, existsSync(`${folder}/kept`) ? "warm" : "cold")',
      '  mkdirSync(folder, { recursive: true })',
      "  writeFileSync(`${folder}/kept`, 'x')",
      '}',
      "mkdirSync('.next', { recursive: true })",
    ].join('\n')
    const context = repository({
      'package.json':
        '{"name":"kept","scripts":{"build":"node build.js","start":"node a.js"},"dependencies":{"next":"15"}}',
      'build.js': build,
    })
    const { dockerfile } = detect(await openTree(context), { install_command: 'true' })
    const scope = newId('app')
    const told = async (mount_scope: string) => {
      writeFileSync(join(context, 'changed.txt'), newId('run'))
      const log: string[] = []
      const image = await buildImage(context, dockerfile, log, mount_scope)
      return { image, lines: log.filter((line) => /(?:warm|cold)$/.test(line)).map((line) => line.slice(-4)) }
    }
    expect((await told(scope)).lines).toEqual(['cold', 'cold', 'cold', 'cold'])
    const again = await told(scope)
    expect(again.lines).toEqual(['warm', 'warm', 'warm', 'warm'])
    expect(await imageHas(again.image, '/app/.next/cache/kept')).toBe(false)
    expect((await told(newId('app'))).lines).toEqual(['cold', 'cold', 'cold', 'cold'])
  }, 240_000)
})

/** Whether a path exists in an image. */
async function imageHas(image: string, path: string): Promise<boolean> {
  const spec = testWorkload({
    project_id: ids.project_id,
    image,
    shell_command: `test -e ${path}`,
    network,
  })
  const { exit_code } = await engine.runOnce(
    { ...spec, purpose: 'task', timeout_ms: 20_000, onLog: () => {} },
    calm,
  )
  return exit_code === 0
}
