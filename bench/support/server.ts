import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { get, Agent } from 'node:http'
import { join, resolve } from 'node:path'
import { ALLOCATOR, NODE_ARGUMENTS } from '#server/start/process-arguments'
import { ADMIN, freePorts } from '#test/support/portreeve'

const ROOT = resolve(import.meta.dirname, '../..')

/**
 * The built server, bare: nothing is waited for and nothing of the engine is touched unless the experiment
 * says so.
 */
export interface Server {
  url: string
  port: number
  pid: number
  /** Milliseconds from the spawn to the first answer of a path with this status, 200 unless it is said. */
  firstAnswer(path: string, status?: number): Promise<number>
  login(email?: string): Promise<string>
  stop(): Promise<void>
}

export async function spawnServer(data_directory: string, env: Record<string, string> = {}): Promise<Server> {
  const program = process.env.PORTREEVE_PROGRAM
  const entry = process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')
  if (!program && !existsSync(entry)) throw new Error('Build the server first: npm run build')
  const [port = 0, http_port = 0, https_port = 0] = await freePorts(3)
  const url = `http://127.0.0.1:${port}`
  const spawned_at = performance.now()
  let output = ''
  const argv = program ? ['serve'] : [...NODE_ARGUMENTS, entry]
  const child: ChildProcess = spawn(program ?? process.execPath, argv, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_ENV: 'production',
      // As the installer starts it.
      ...ALLOCATOR,
      HOST: '127.0.0.1',
      PORT: String(port),
      PORTREEVE_DATA_DIR: data_directory,
      PORTREEVE_HTTP_PORT: String(http_port),
      PORTREEVE_HTTPS_PORT: String(https_port),
      PORTREEVE_BASE_DOMAIN: 'apps.test',
      PORTREEVE_ADMIN_EMAIL: ADMIN.email,
      PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
      ...env,
    },
  })
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4000)
    })
  return {
    url,
    port,
    pid: child.pid!,
    async firstAnswer(path, status = 200) {
      for (;;) {
        if (child.exitCode !== null) throw new Error(output)
        if ((await statusOf(`${url}${path}`)) === status) return performance.now() - spawned_at
        if (performance.now() - spawned_at > 60_000)
          throw new Error(`${path} did not answer ${status} within a minute. ${output}`)
        await new Promise((done) => setTimeout(done, 10))
      }
    },
    async login(email = ADMIN.email) {
      const attempt = () =>
        fetch(`${url}/api/auth/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email, password: ADMIN.password }),
        })
      let answer = await attempt()
      // 503: the process answers already, the product behind it is still starting.
      while (answer.status === 503) answer = await attempt()
      if (!answer.ok) throw new Error(`Login of ${email}: ${await answer.text()}`)
      return ((await answer.json()) as { data: { token: string } }).data.token
    },
    stop: () =>
      new Promise((done) => {
        if (child.exitCode !== null) return done()
        child.once('exit', () => done())
        child.kill('SIGTERM')
        return undefined
      }),
  }
}

const statusOf = (url: string) =>
  new Promise<number | undefined>((done) => {
    get(url, { agent: false }, (response) =>
      response.resume().once('end', () => done(response.statusCode)),
    ).once('error', () => done(undefined))
  })

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
/** One GET on the one kept-alive connection: its time and its text. */
export const timedGet = (url: string, token?: string) =>
  new Promise<{ took_ms: number; status: number; body: string }>((done, fail) => {
    const began = performance.now()
    get(url, { agent, headers: token ? { authorization: `Bearer ${token}` } : {} }, (response) => {
      const chunks: Buffer[] = []
      response
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .once('error', fail)
        .once('end', () =>
          done({
            took_ms: performance.now() - began,
            status: response.statusCode!,
            body: Buffer.concat(chunks).toString(),
          }),
        )
    }).once('error', fail)
  })
