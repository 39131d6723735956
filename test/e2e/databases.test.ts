import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { GitServer } from '#test/support/git-server'
import { settledDatabase } from '#test/support/databases'
import { docker, eventually, type Portreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { deployed, redeployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const server = useForge()
let portreeve: Portreeve
let forge: GitServer
beforeAll(() => {
  ;({ portreeve, forge } = server)
})

const run = promisify(execFile)
const path = (id: string, rest = '') => `/api/databases/${id}${rest}`
const show = async (id: string) => (await portreeve.call('GET', path(id))).body.data

const settled = (id: string) => settledDatabase(portreeve, id)
/** A name that no attempt of a test before has taken. */
let names = 0
const fresh = (name: string) => `${name}-${(names += 1)}`
async function created(body: Record<string, unknown>) {
  const answer = await portreeve.call('POST', '/api/databases', body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  const database = await settled(answer.body.data.id)
  expect(database, database.last_error).toMatchObject({ status: 'running', last_error: null })
  return database
}
async function changed(id: string, body: Record<string, unknown>) {
  const answer = await portreeve.call('PUT', path(id), body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return settled(id)
}
async function rotated(id: string) {
  expect((await portreeve.call('POST', path(id, '/credentials/rotate'))).status).toBe(200)
  const database = await settled(id)
  expect(database.last_error).toBeNull()
  return database
}
async function deleted(id: string) {
  const { volume_id } = await show(id)
  expect((await portreeve.call('DELETE', path(id, '?skip_backup=true'))).status).toBe(200)
  await eventually('The database being gone', async () =>
    (await portreeve.call('GET', path(id))).status === 404 ? true : undefined,
  )
  expect(docker('ps', '-aq', '--filter', `label=portreeve.database=${id}`)).toBe('')
  expect(docker('volume', 'ls', '-q', '--filter', `name=${volume_id}`)).toBe('')
}
/** What each client library does with an address as it is, from a container of the project's network. */
const CLIENTS = {
  pg: `const c = new (require('pg').Client)(url); await c.connect(); const r = await c.query(text); await c.end(); return (Array.isArray(r) ? r.at(-1) : r).rows`,
  mysql2: `const c = await require('mysql2/promise').createConnection(url); const [r] = await c.query(text); await c.end(); return r`,
  ioredis: `const c = new (require('ioredis').Redis)(url, { retryStrategy: null }); const r = await c.call(...text.split(' ')); await c.quit(); return r`,
}
async function request(
  { connection_string, project_id }: { connection_string: string; project_id: string },
  client: keyof typeof CLIENTS,
  text: string,
): Promise<any> {
  const script = `const [url, text] = process.argv.slice(1); (async () => { ${CLIENTS[client]} })().then((r) => console.log(JSON.stringify(r)), (e) => { console.error(e.message); process.exit(1) })`
  const network = `ptr-${project_id.replace('prj_', '')}`
  const { stdout } = await run('docker', [
    ...['run', '--rm', '--network', network, '-v', `${join(ROOT, 'node_modules')}:/client/node_modules:ro`],
    ...['-w', '/client', 'node:24-slim', 'node', '-e', script, connection_string, text],
  ])
  return JSON.parse(stdout)
}
const refused = (
  database: { connection_string: string; project_id: string },
  client: keyof typeof CLIENTS,
  text: string,
) => expect(request(database, client, text)).rejects.toThrow()
const container = (id: string) => docker('ps', '-q', '--filter', `label=portreeve.database=${id}`)

const APP = {
  'package.json': JSON.stringify({
    name: 'notes',
    version: '1.0.0',
    scripts: { start: 'node server.js' },
    dependencies: { pg: '8.23.1' },
  }),
  'server.js': `const { Pool } = require('pg')
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 2 })
pool.on('error', () => {})
require('node:http').createServer(async (_, response) => {
  try {
    response.end((await pool.query('SELECT session_user AS login')).rows[0].login)
  } catch (error) {
    response.statusCode = 500
    response.end(error.message)
  }
}).listen(process.env.PORT)
process.on('SIGTERM', () => process.exit(0))
`,
}

describe.concurrent('a PostgreSQL database', () => {
  it('is made, linked, rotated under traffic, opened, upgraded and deleted without a loss', async () => {
    const made = await created({ name: fresh('notes-db'), engine: 'postgres', version: '15' })
    const { id } = made
    await request(
      made,
      'pg',
      `CREATE TABLE notes AS SELECT n AS id, md5(n::text) AS body FROM generate_series(1, 100000) n; SELECT 1`,
    )
    const SUM = `SELECT count(*)::int AS count, md5(string_agg(body, '' ORDER BY id)) AS sum FROM notes`
    const [before] = await request(made, 'pg', SUM)
    expect(before.count).toBe(100_000)
    // The login of apps is no administrator: the server itself refuses programs and files.
    await refused(made, 'pg', `COPY notes FROM PROGRAM 'id'`)
    await refused(made, 'pg', `SELECT pg_read_file('/etc/passwd')`)

    const repository = forge.repository(fresh('notes'))
    repository.commit(APP, 'first')
    const app = await deployed(portreeve, {
      name: fresh('notes'),
      git_url: repository.url,
      branch: 'main',
      health_check: { type: 'tcp' },
    })
    expect((await portreeve.call('POST', path(id, '/links'), { app_id: app.id })).status).toBe(201)
    expect((await redeployed(portreeve, app.id)).status).toBe('live')
    expect(await portreeve.visit(app.domain)).toEqual({ status: 200, body: 'app_1' })

    const answers: { status: number; body: string }[] = []
    let rotating = true
    const traffic = (async () => {
      while (rotating) answers.push(await portreeve.visit(app.domain))
    })()
    const after = await rotated(id)
    rotating = false
    await traffic
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(answers.length).toBeGreaterThan(10)
    expect(await portreeve.visit(app.domain)).toEqual({ status: 200, body: 'app_2' })
    await refused(made, 'pg', 'SELECT 1')
    expect(await request(after, 'pg', SUM)).toEqual([before])

    docker('rm', '-f', container(id))
    await eventually('The server being made again', () => container(id) || undefined)
    expect(await eventually('The data being there', () => request(after, 'pg', SUM))).toEqual([before])

    const public_port = 15_432
    const opened = await changed(id, { public: true, public_port })
    expect(opened, opened.last_error).toMatchObject({ status: 'running', public_port })
    const outside = new pg.Client(`${opened.external_connection_string}&uselibpqcompat=true`)
    await outside.connect()
    const { encrypted } = (outside as unknown as { connection: { stream: { encrypted?: boolean } } })
      .connection.stream
    const [{ count }] = (await outside.query('SELECT count(*)::int FROM notes')).rows
    await outside.end()
    expect([encrypted, count]).toEqual([true, before.count])

    const upgraded = await changed(id, { version: '17', public: false })
    expect(upgraded, upgraded.last_error).toMatchObject({
      status: 'running',
      version: '17',
      previous_volume: { version: '15' },
      last_error: null,
    })
    expect(await request(upgraded, 'pg', SUM)).toEqual([before])
    const [{ server_version }] = await request(upgraded, 'pg', 'SHOW server_version')
    expect(server_version).toMatch(/^17/)
    expect(
      await eventually('The app answering again', async () => {
        const answer = await portreeve.visit(app.domain)
        return answer.status === 200 ? answer.body : undefined
      }),
    ).toBe('app_2')
    await changed(id, { previous_volume: 'remove' })
    expect(docker('volume', 'ls', '-q', '--filter', `name=${made.volume_id}`)).toBe('')
    const logs = await portreeve.call('GET', path(id, '/logs?q=ready%20to%20accept'))
    expect(logs.body.data.length).toBeGreaterThan(0)
    await deleted(id)
  })
})

describe.concurrent('a database that is opened to the outside', () => {
  it('answers there as soon as it is said to run, and keeps its rows each time', async () => {
    const { id } = await created({ name: fresh('open-db'), engine: 'postgres', version: '17' })
    for (let turn = 1; turn <= 6; turn += 1) {
      const opened = await changed(id, { public: true })
      const client = new pg.Client(`${opened.external_connection_string}&uselibpqcompat=true`)
      await client.connect()
      await client.query('CREATE TABLE IF NOT EXISTS turns (turn int)')
      await client.query('INSERT INTO turns VALUES ($1)', [turn])
      expect((await client.query('SELECT count(*)::int FROM turns')).rows).toEqual([{ count: turn }])
      await client.end()
      await changed(id, { public: false })
    }
    const logs = await portreeve.call('GET', path(id, '/logs?q=not%20properly%20shut%20down'))
    expect(logs.body.data).toEqual([])
    await deleted(id)
  })
})

describe.concurrent('a MariaDB database', () => {
  it('takes its address as it is, keeps its data over a restart, and rotates without a gap', async () => {
    const made = await created({ name: fresh('maria-db'), engine: 'mariadb', version: '11.8' })
    await request(made, 'mysql2', 'CREATE TABLE notes AS SELECT seq AS id FROM seq_1_to_1000')
    expect((await portreeve.call('POST', path(made.id, '/restart'))).status).toBe(200)
    await settled(made.id)
    expect(await request(made, 'mysql2', 'SELECT COUNT(*) AS count FROM notes')).toEqual([{ count: 1000 }])
    const after = await rotated(made.id)
    await refused(made, 'mysql2', 'SELECT 1')
    expect(await request(after, 'mysql2', 'SELECT COUNT(*) AS count FROM notes')).toEqual([{ count: 1000 }])
    await deleted(made.id)
  })
})

describe.concurrent.each(['redis', 'valkey'])('a %s database', (engine) => {
  it('takes its address as it is, keeps its data over a restart, and rotates without a gap', async () => {
    const made = await created({ name: fresh(`${engine}-db`), engine, version: '8' })
    await request(made, 'ioredis', 'SET greeting hello')
    await refused(
      { ...made, connection_string: made.connection_string.replace(made.password, 'wrong') },
      'ioredis',
      'GET greeting',
    )
    expect((await portreeve.call('POST', path(made.id, '/restart'))).status).toBe(200)
    await settled(made.id)
    expect(await request(made, 'ioredis', 'GET greeting')).toBe('hello')
    const after = await rotated(made.id)
    await refused(made, 'ioredis', 'GET greeting')
    expect(await request(after, 'ioredis', 'GET greeting')).toBe('hello')
    await deleted(made.id)
  })
})

/** Answers with the connection string that it was given. */
const TELLS_ITS_DATABASE = `FROM node:24-slim
CMD ["node", "-e", "require('http').createServer((_, answer) => answer.end(String(process.env.DATABASE_URL))).listen(process.env.PORT)"]`

describe.concurrent('a database that was deleted', () => {
  it('is back by one call, with its data, for the app that used it', async () => {
    const made = await created({ name: fresh('missed-db'), engine: 'redis', version: '8' })
    await request(made, 'ioredis', 'SET greeting hello')
    const app = await deployed(portreeve, { name: fresh('misses'), dockerfile: TELLS_ITS_DATABASE })
    const link = await portreeve.call('POST', path(made.id, '/links'), { app_id: app.id })
    expect(link.status).toBe(201)
    const { body } = await portreeve.call('DELETE', path(made.id))
    await eventually('The database being gone', async () =>
      (await portreeve.call('GET', path(made.id))).status === 404 ? true : undefined,
    )
    expect((await redeployed(portreeve, app.id)).status).toBe('live')
    expect(await portreeve.visit(app.domain)).toEqual({ status: 200, body: 'undefined' })

    const backup = `/api/backups/${body.data.final_backup_id}/restore`
    const restored = await portreeve.call('POST', backup, { mode: 'new' })
    expect(restored.status, JSON.stringify(restored.body)).toBe(201)
    const back = await settled(restored.body.data.target_id)
    await eventually('The link being back', async () =>
      (await show(back.id)).links.length > 0 ? true : undefined,
    )
    expect(await request(back, 'ioredis', 'GET greeting')).toBe('hello')
    expect((await redeployed(portreeve, app.id)).status).toBe('live')
    expect(await portreeve.visit(app.domain)).toEqual({ status: 200, body: back.connection_string })
    await deleted(back.id)
  })
})
