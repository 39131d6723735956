import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ADMIN, eventually, freePorts } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { percentile } from '#test/support/statistics'

/** Bars for a server whose engine takes connections and answers nothing. */
const API_MS = 3_000
const CHECK_MS = 3_500
const P99_MS = 200
const LOCKED_MS = 3_000

let directory: string
let url: string
let token: string
let api_ms: number
const engine = createServer(() => undefined)
const ends: (() => void)[] = []
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ptr-patience-'))
  const socket = join(directory, 'engine.sock')
  await new Promise<void>((resolve) => engine.listen(socket, resolve))
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  url = `http://127.0.0.1:${port}`
  const child = spawn(
    process.execPath,
    [process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')],
    {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        HOST: '127.0.0.1',
        PORT: String(port),
        DOCKER_HOST: `unix://${socket}`,
        PORTREEVE_DATA_DIR: join(directory, 'data'),
        PORTREEVE_HTTP_PORT: String(http),
        PORTREEVE_HTTPS_PORT: String(https),
        PORTREEVE_ADMIN_EMAIL: ADMIN.email,
        PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
      },
    },
  )
  ends.push(() => child.kill('SIGKILL'))
  await eventually('The server living', async () => ((await fetch(`${url}/healthz`)).ok ? true : undefined))
  const began = performance.now()
  await eventually('The API answering', async () =>
    (await fetch(`${url}/api/auth/me`)).status === 401 ? true : undefined,
  )
  api_ms = performance.now() - began
  const login = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ADMIN),
  })
  token = ((await login.json()) as { data: { token: string } }).data.token
})
afterAll(() => {
  for (const end of ends) end()
  engine.close()
  rmSync(directory, { recursive: true, force: true })
})

const call = (method: string, path: string, body?: unknown) =>
  fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

it('the API starts without waiting for the engine', () => {
  expect(api_ms).toBeLessThan(API_MS)
})

it('/readyz answers in time, and says what does not', async () => {
  const began = performance.now()
  const answers = await Promise.all(Array.from({ length: 10 }, () => fetch(`${url}/readyz`)))
  expect(performance.now() - began).toBeLessThan(CHECK_MS)
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503))
  const { checks } = (await answers[0]!.json()) as { checks: Record<string, { ok: boolean }> }
  expect(checks.database!.ok).toBe(true)
  expect(checks.engine!.ok).toBe(false)
})

it('a lock that another program holds on the database for a while stops nobody, and changes wait for its end', async () => {
  const other = new Database(join(directory, 'data/portreeve.db'))
  other.exec('BEGIN EXCLUSIVE')
  const times: number[] = []
  const changes: Promise<number>[] = []
  const end = performance.now() + LOCKED_MS
  while (performance.now() < end) {
    const change = call('POST', '/api/projects', { name: `Locked ${times.length}` })
    changes.push(change.then(({ status }) => status))
    const began = performance.now()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    times.push(performance.now() - began)
    expect((await call('GET', '/api/projects')).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  other.exec('ROLLBACK')
  other.close()
  expect(percentile(times, 99)).toBeLessThan(P99_MS)
  expect(new Set(await Promise.all(changes))).toEqual(new Set([201]))
})

it('meanwhile who was not seen for long reads on, and who is not logged in is told so', async () => {
  const other = new Database(join(directory, 'data/portreeve.db'))
  other.exec(`UPDATE sessions SET last_used_at = '2026-01-01T00:00:00.000Z'; BEGIN EXCLUSIVE`)
  try {
    expect((await call('GET', '/api/projects')).status).toBe(200)
    expect((await fetch(`${url}/api/projects`)).status).toBe(401)
  } finally {
    other.exec('ROLLBACK')
    other.close()
  }
})

it('a change that finds the database locked for long is told to come back', async () => {
  const other = new Database(join(directory, 'data/portreeve.db'))
  other.exec('BEGIN EXCLUSIVE')
  const refused = await call('POST', '/api/projects', { name: 'Locked for long' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  other.exec('ROLLBACK')
  other.close()
  expect((await call('POST', '/api/projects', { name: 'Free again' })).status).toBe(201)
})
