import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { ALLOCATOR, NODE_ARGUMENTS } from '#server/start/process-arguments'
import { loopFault, type LoopReport, readLoopReport } from './loop-report.ts'
import { ROOT } from './routes.ts'

/**
 * The built server as a user starts it, on a data directory and ports of its own, against the real
 * engine.
 */
export interface Portreeve {
  url: string
  edge_port: number
  data_directory: string
  /** Everything that the server printed. */
  output(): string
  pid(): number
  /** How long its main thread kept others waiting, from the last start on; written every two seconds. */
  loop(): LoopReport | undefined
  /** One call as the administrator; the answer's status, body and headers. */
  call<T = any>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: T; headers: Headers }>
  token(): string
  /** A request through the edge with this host name. */
  visit(host: string, path?: string): Promise<{ status: number; body: string }>
  /** Waits until the app has this status, or the deployment has ended. */
  untilApp(id: string, status: string | string[]): Promise<any>
  untilDeployment(id: string): Promise<any>
  /** kill -9. */
  kill(): Promise<void>
  /** Starts again on the same data directory after `kill` or `stop`. */
  start(env?: Record<string, string>): Promise<void>
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  /** kill -9, and everything of it is gone as with its server: containers, volumes, images, data. */
  lose(): Promise<void>
  /** Stops it and removes its containers, networks, images, volumes and data. */
  dispose(): Promise<void>
}
export interface PortreeveOptions {
  env?: Record<string, string>
  /** A binary of `npm run binary` to start; also PORTREEVE_PROGRAM, an absolute path, for whole suites. */
  program?: string
  /** Nothing is loaded beside the product when false: it weighs what an installed one does. */
  is_watched?: boolean
  /** Nothing is compiled before: the first start of an installation. */
  is_cold?: boolean
}

export const ADMIN = { email: 'admin@example.test', password: 'correct horse battery staple' }
const DOCKER = '/usr/bin/docker'

/** TCP ports that are free now, held together until all are known, so that none comes twice. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Server>((resolve, reject) => {
          const server = createServer()
            .once('error', reject)
            .listen(0, '127.0.0.1', () => resolve(server))
        }),
    ),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
/** One TCP port that is free now. */
export const freePort = async (): Promise<number> => (await freePorts(1))[0]!

/** What one server under test compiled is read by all later ones, as each start of an installation but its first does. */
const COMPILED = join(ROOT, 'node_modules/.cache/compiled-server')

const ASK_MS = { first: 25, last: 150 }
/**
 * Asks until `check` gives something; fails with what it saw last. Who has waited longer asks less
 * often: the questions of three lanes would take a tenth of a core from what they wait for.
 */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined> | T | undefined,
  limit_ms = 90_000,
): Promise<T> {
  const begin = Date.now()
  const end = begin + limit_ms
  let last: unknown
  while (Date.now() < end) {
    try {
      const found = await check()
      if (found !== undefined) return found
    } catch (error) {
      last = error
    }
    const pause_ms = Math.min(ASK_MS.last, Math.max(ASK_MS.first, (Date.now() - begin) / 20))
    await new Promise((resolve) => setTimeout(resolve, pause_ms))
  }
  throw new Error(`${what} did not happen within ${limit_ms / 1000} s.`, { cause: last })
}

/** Runs the Docker CLI with these arguments. */
export const docker = (...args: string[]): string =>
  execFileSync(DOCKER, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

export async function startPortreeve(options: PortreeveOptions = {}): Promise<Portreeve> {
  // The one-file binary instead of the built server: the same tests say that it is the same.
  const binary = options.program ?? process.env.PORTREEVE_PROGRAM
  // A copy of a build stays what it is while the checkout is built again.
  const entry = process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')
  if (!existsSync(entry)) throw new Error('Build the server first: npm run build')
  const data_directory = mkdtempSync(join(tmpdir(), 'ptr-'))
  const [port = 0, edge_port = 0, https_port = 0] = await freePorts(3)
  const url = `http://127.0.0.1:${port}`
  let child: ChildProcess
  let output = ''
  let token = ''

  // A connection for each call: one that is kept may be closed by the server while a test runs a
  // command for seconds.
  const call: Portreeve['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        connection: 'close',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(body !== undefined ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body !== undefined
        ? {
            body:
              typeof body === 'string' || body instanceof Uint8Array
                ? (body as string)
                : JSON.stringify(body),
          }
        : {}),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: text.startsWith('{') ? JSON.parse(text) : (text as any),
    }
  }

  const login = async () => {
    const answer = await call('POST', '/api/auth/login', { email: ADMIN.email, password: ADMIN.password })
    if (answer.status !== 200) throw new Error(`Login failed: ${JSON.stringify(answer.body)}`)
    token = answer.body.data.token
  }

  const loop_files: string[] = []
  const start = async (env: Record<string, string> = {}) => {
    const loop_file = join(data_directory, `work-loop-${loop_files.length}.json`)
    loop_files.push(loop_file)
    const is_watched = !binary && options.is_watched !== false
    const probe = is_watched ? ['--import', join(ROOT, 'test/support/loop-probe.ts')] : []
    const script = [...NODE_ARGUMENTS, ...probe, env.PORTREEVE_ENTRY ?? entry]
    child = spawn(binary ?? process.execPath, binary ? ['serve'] : script, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        NODE_ENV: 'production',
        // As the installer starts it.
        ...ALLOCATOR,
        ...(options.is_cold ? {} : { NODE_COMPILE_CACHE: COMPILED }),
        HOST: '127.0.0.1',
        PORT: String(port),
        PORTREEVE_DATA_DIR: data_directory,
        PORTREEVE_HTTP_PORT: String(edge_port),
        PORTREEVE_HTTPS_PORT: String(https_port),
        PORTREEVE_BASE_DOMAIN: 'apps.test',
        PORTREEVE_ADMIN_EMAIL: ADMIN.email,
        PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
        PORTREEVE_LOG_LEVEL: 'debug',
        LOOP_PROBE_FILE: loop_file,
        LOOP_PROBE_PROFILE: process.env.LOOP_PROBE_PROFILE,
        ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
        ...options.env,
        ...env,
      },
    })
    child.stdout!.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.stderr!.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    await eventually(`The server being ready (${output.slice(-2000)})`, async () => {
      if (child.exitCode !== null) throw new Error(output)
      return (await fetch(`${url}/readyz`)).status === 200 ? true : undefined
    })
    // A session outlives its server, and the hash of a password takes a third of a second of a
    // core.
    if (!token || (await call('GET', '/api/auth/me')).status !== 200) await login()
    // From here on nobody may be kept waiting; see `loop-probe.ts`.
    if (!binary && options.is_watched !== false) child.kill('SIGUSR2')
  }

  const end = (signal: NodeJS.Signals) =>
    new Promise<number | null>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve(child.exitCode)
      child.once('exit', (code) => resolve(code))
      child.kill(signal)
      return undefined
    })

  const wipe = () => removeInstallation(data_directory)
  await start()
  return {
    url,
    edge_port,
    data_directory,
    call,
    output: () => output,
    pid: () => child.pid!,
    loop: () => readLoopReport(loop_files.at(-1)!),
    token: () => token,
    visit: (host, path = '/') =>
      new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port: edge_port, path, agent: false, headers: { host } }, (response) => {
          let body = ''
          response
            .on('data', (chunk: Buffer) => {
              body += chunk.toString()
            })
            .on('end', () => resolve({ status: response.statusCode!, body }))
        }).on('error', reject)
      }),
    untilApp: (id, status) =>
      eventually(
        `App ${id} being ${String(status)}`,
        async () => {
          const { body } = await call('GET', `/api/apps/${id}`)
          return [status].flat().includes(body.data.status) ? body.data : undefined
        },
        180_000,
      ),
    untilDeployment: (id) =>
      eventually(
        `Deployment ${id} ending`,
        async () => {
          const { body } = await call('GET', `/api/deployments/${id}`)
          return body.data.finished_at ? body.data : undefined
        },
        180_000,
      ),
    kill: async () => void (await end('SIGKILL')),
    start,
    stop: () => end('SIGTERM'),
    async lose() {
      await end('SIGKILL')
      wipe()
      for (const name of readdirSync(data_directory))
        rmSync(join(data_directory, name), { recursive: true, force: true })
    },
    async dispose() {
      await end('SIGTERM')
      wipe()
      execFileSync('bash', ['-c', '. scripts/shell/engine.sh && host_rules_remove'], { cwd: ROOT })
      const faults = loop_files.flatMap((file) => {
        const report = readLoopReport(file)
        const fault = report && loopFault(report)
        if (report && process.env.LOOP_REPORTS)
          appendFileSync(process.env.LOOP_REPORTS, `${JSON.stringify(report)}\n`)
        return fault === undefined ? [] : [fault]
      })
      rmSync(data_directory, { recursive: true, force: true })
      // A profiler keeps the thread itself: then they are for whoever looks, and no verdict.
      if (process.env.LOOP_PROBE_PROFILE === '1') process.stdout.write(`${faults.join('\n')}\n`)
      else if (faults.length > 0) throw new Error(faults.join('\n'))
    },
  }
}

/** Removes everything that the engine has of the installation in this folder. */
export function removeInstallation(data_directory: string): void {
  removeOf(`portreeve.installation=${installationOf(data_directory)}`)
  const edge = docker('ps', '-aq', '--filter', `label=portreeve.edge`).split('\n').filter(Boolean)
  for (const id of edge)
    if (docker('inspect', id, '--format', '{{json .Mounts}}').includes(data_directory)) docker('rm', '-f', id)
}

/** What the server marked its containers, images, networks and volumes with. */
function installationOf(data_directory: string): string {
  const db = new Database(join(data_directory, 'portreeve.db'), { readonly: true })
  try {
    return db.prepare(`SELECT value FROM meta WHERE key = 'installation'`).pluck().get() as string
  } finally {
    db.close()
  }
}

function removeOf(label: string): void {
  const containers = docker('ps', '-aq', '--filter', `label=${label}`).split('\n').filter(Boolean)
  if (containers.length > 0) docker('rm', '-f', ...containers)
  const images = docker('images', '-q', '--filter', `label=${label}`).split('\n').filter(Boolean)
  if (images.length > 0) docker('rmi', '-f', ...new Set(images))
  const networks = docker('network', 'ls', '-q', '--filter', `label=${label}`).split('\n').filter(Boolean)
  if (networks.length > 0) docker('network', 'rm', ...networks)
  const volumes = docker('volume', 'ls', '-q', '--filter', `label=${label}`).split('\n').filter(Boolean)
  if (volumes.length > 0) docker('volume', 'rm', '-f', ...volumes)
}

/** What a test app prints first, and files of small apps that need nothing but their base image. */
export const nodeApp = (version: string) => ({
  'package.json': JSON.stringify({
    name: 'shop',
    version: '1.0.0',
    scripts: { start: 'node server.js' },
  }),
  'server.js': `const http = require('node:http')
http.createServer((request, response) => {
  response.setHeader('x-version', ${JSON.stringify(version)})
  response.end(${JSON.stringify(version)})
}).listen(Number(process.env.PORT), '0.0.0.0', () => console.log(${JSON.stringify(`listening ${version}`)}))
process.on('SIGTERM', () => process.exit(0))
`,
})
export const readText = (path: string) => readFileSync(path, 'utf8')
