/**
 * Lists of apps and deployments at 100, 10,000 and 100,000 rows: below 3 ms and flat. Measured is the whole
 * round trip on one kept-alive connection, which is more than the time at the server. The lowest tenth of the
 * times is taken: what is above it on a shared machine is others' work. `npx node bench/lists.ts
 * [--requests=100]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { ADMIN } from '#test/support/portreeve'
import { newId } from '#server/kernel/ids'
import { createReport, ms, numberOptions } from './support/report.ts'
import { spawnServer, timedGet } from './support/server.ts'

const SIZES = [100, 10_000, 100_000]
const LIMIT_MS = 3
const FLAT = 1.5
/** Differences below this are noise of the clock and of the machine. */
const NOISE_MS = 0.3
const PROJECTS = 10
/** The first requests compile the code and fill the caches. */
const WARM_UP = 10
/** Rows of two projects of the member of three end here, so that later all their rows are old ones. */
const OLD_ROWS = 100
const FILTERED_REQUESTS = 20
const options = numberOptions({ requests: 100 })
const report = createReport(
  `Pages of 20 at 100 / 10,000 / 100,000 rows, lowest tenths of ${options.requests} round trips`,
)
const data_directory = mkdtempSync(join(tmpdir(), 'ptr-lists-'))
const start = () => spawnServer(data_directory, { DOCKER_HOST: 'unix:///nonexistent/docker.sock' })
const times = new Map<string, number[]>()

try {
  const first = await start()
  await first.firstAnswer('/healthz')
  await first.login()
  await first.stop()
  const projects = withDb((db) => people(db))
  for (const size of SIZES) {
    withDb((db) => fill(db, projects, size))
    const server = await start()
    try {
      await server.firstAnswer('/healthz')
      await measure(server, size)
    } finally {
      await server.stop()
    }
  }
} finally {
  rmSync(data_directory, { recursive: true, force: true })
}

for (const [name, [small = 0, , large = 0]] of times) {
  const found = `${times
    .get(name)!
    .map((value) => value.toFixed(2))
    .join(' / ')} ms`
  if (name.includes('filter')) report.figure(name, found)
  else {
    report.check(`${name}: below ${LIMIT_MS} ms`, large < LIMIT_MS, found)
    report.check(
      `${name}: flat`,
      large - small < NOISE_MS || large / small < FLAT,
      `ratio ${(large / small).toFixed(2)}`,
    )
  }
}
report.figure('round trip of /healthz', ms(Math.min(...(times.get('/healthz filter') ?? []))))
report.end()

function withDb<T>(work: (db: Database.Database) => T): T {
  const db = new Database(join(data_directory, 'portreeve.db'))
  try {
    return db.transaction(() => work(db))()
  } finally {
    db.close()
  }
}

/**
 * Ten projects, a member of a busy one and a member of three that have only old rows, with the password of
 * the administrator.
 */
function people(db: Database.Database): string[] {
  const at = new Date().toISOString()
  const hash = db
    .prepare('SELECT password_hash FROM users WHERE email = ?')
    .pluck()
    .get(ADMIN.email) as string
  const projects: string[] = []
  for (let n = 1; n <= PROJECTS; n += 1) {
    const id = newId('prj')
    projects.push(id)
    db.prepare('INSERT INTO projects (id, name, created_at, updated_at) VALUES (?, ?, ?, ?)').run(
      id,
      `project-${n}`,
      at,
      at,
    )
  }
  for (const [email, memberships] of [
    ['one@example.test', 1],
    ['three@example.test', 3],
  ] as const) {
    const id = newId('usr')
    db.prepare(
      `INSERT INTO users (id, email, name, role, password_hash, created_at, updated_at) VALUES (?, ?, ?, 'member', ?, ?, ?)`,
    ).run(id, email, email, hash, at, at)
    for (const project of memberships === 1 ? projects.slice(3, 4) : projects.slice(0, 3))
      db.prepare(
        `INSERT INTO project_members (project_id, user_id, role, created_at) VALUES (?, ?, 'developer', ?)`,
      ).run(project, id, at)
  }
  return projects
}

/**
 * Adds apps and deployments until there are `size` of each, spread over the projects and over their statuses.
 */
function fill(db: Database.Database, projects: string[], size: number): void {
  const have = db.prepare('SELECT count(*) FROM apps').pluck().get() as number
  const app = db.prepare(
    `INSERT INTO apps (id, name, project_id, status, source, git_url, created_at, updated_at) VALUES (?, ?, ?, ?, 'git', 'https://git.example.com/a.git', ?, ?)`,
  )
  const domain = db.prepare(
    `INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at) VALUES (?, ?, ?, ?, 'automatic', 'active', 'off', '-', ?, ?)`,
  )
  const deployment = db.prepare(
    `INSERT INTO deployments (id, app_id, project_id, number, status, trigger, branch, commit_sha, commit_message, created_at, started_at, live_at, finished_at) VALUES (?, ?, ?, ?, ?, 'push', 'main', ?, 'A commit', ?, ?, ?, ?)`,
  )
  for (let n = have; n < size; n += 1) {
    const [id, project] = [newId('app'), projects[n < OLD_ROWS ? n % PROJECTS : 3 + (n % (PROJECTS - 3))]!]
    const at = new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString()
    app.run(id, `app-${n}`, project, ['stopped', 'stopped', 'stopped', 'failed'][n % 4], at, at)
    domain.run(newId('dom'), id, project, `app-${n}.apps.test`, at, at)
    deployment.run(
      newId('dep'),
      id,
      project,
      1,
      n % 5 === 0 ? 'failed' : 'live',
      'a'.repeat(40),
      at,
      at,
      at,
      at,
    )
  }
}

async function measure(server: Awaited<ReturnType<typeof start>>, size: number): Promise<void> {
  const callers = {
    administrator: await server.login(),
    'member of one project': await server.login('one@example.test'),
    'member of three with few rows': await server.login('three@example.test'),
  }
  push('/healthz filter', await lowOf(`${server.url}/healthz`))
  for (const [who, token] of Object.entries(callers)) {
    const request = async (name: string, path: string) =>
      push(
        `${name}, ${who}`,
        await lowOf(server.url + path, token, name.includes('filter') ? FILTERED_REQUESTS : options.requests),
      )
    for (const list of ['apps', 'deployments']) {
      await request(`${list}, page 1`, `/api/${list}?per_page=20`)
      if (size > 100) await request(`${list}, page 50`, `/api/${list}?per_page=20&page=50`)
      else await request(`${list}, page 50`, `/api/${list}?per_page=20&page=1`)
      await request(`${list}, filter status`, `/api/${list}?per_page=20&status=failed`)
    }
    await request('apps, filter q', '/api/apps?per_page=20&q=app-5')
  }
}
function push(name: string, value: number): void {
  times.set(name, [...(times.get(name) ?? []), value])
}

async function lowOf(url: string, token?: string, requests = options.requests): Promise<number> {
  const took: number[] = []
  for (let n = 0; n < requests + WARM_UP; n += 1) {
    const answer = await timedGet(url, token)
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${answer.body}`)
    if (n >= WARM_UP) took.push(answer.took_ms)
  }
  return took.toSorted((a, b) => a - b)[Math.floor(took.length / 10)]!
}
