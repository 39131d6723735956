/**
 * Portreeve is killed with -9 before and after every step of a backup, of a restore, of a copy of files and of a
 * recovery to a moment; with `--database=1` the server of the database is killed at the same time. After each
 * the database holds what it held or what was restored, never a mix of both, on one server and without a leftover.
 * `npx node bench/backup-crash.ts [--rows=10000] [--database=0]`
 */
import { settledDatabase } from '#test/support/databases'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { isAlive } from './support/alive.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'

const STEPS: Record<string, readonly string[]> = {
  'backup.create': ['dump', 'describe', 'retain'],
  'backup.restore': ['check', 'prepare', 'switch', 'finish'],
  'database.copy_files': ['copy', 'log', 'prune'],
  'database.recover': ['log', 'check', 'prepare', 'switch', 'finish'],
}
const options = numberOptions({ rows: 10_000, database: 0 })
const report = createReport('kill -9 at every step of backups and restores of a PostgreSQL')
const faults: string[] = []
const recoveries: number[] = []
const portreeve: Portreeve = await startPortreeve()
const LIMIT_MS = 300_000
const UNDER_WAY = ['queued', 'running', 'undoing']

const call = async (method: string, path: string, body?: unknown) => {
  const answer = await portreeve.call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const servers = (id: string) =>
  docker('ps', '-q', '--filter', `label=portreeve.database=${id}`).split('\n').filter(Boolean)
const ask = (database: { id: string; username: string; password: string; database: string }, text: string) =>
  docker(
    ...['exec', '-e', `PGPASSWORD=${database.password}`, servers(database.id)[0] ?? 'none', 'psql'],
    ...['-h', '127.0.0.1', '-U', database.username, '-d', database.database, '-Atqc', text],
  )
/** Rows and which of the two contents they have: more than one word is a mix. */
const STATE = `SELECT count(*) || ' ' || string_agg(DISTINCT word, '+') FROM notes`
const NOW = `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const is_logged = (kind: string) => kind.startsWith('database.')

let number = 0
async function make(kind: string): Promise<any> {
  const { id } = await call('POST', '/api/databases', {
    ...{ name: `crash-${(number += 1)}`, engine: 'postgres', version: '17' },
    ...(kind === 'database.recover' ? { point_in_time: {} } : {}),
  })
  const made = await settledDatabase(portreeve, id)
  if (kind === 'database.recover')
    await eventually(
      'The log being archived',
      async () =>
        (await call('GET', `/api/databases/${id}`)).point_in_time.status === 'active' ? true : undefined,
      LIMIT_MS,
    )
  ask(made, `CREATE TABLE notes AS SELECT n AS id, 'old' AS word FROM generate_series(1, ${options.rows}) n`)
  return made
}
const backupEnded = (id: string) =>
  eventually(
    `The backup ${id} ending`,
    async () => {
      const backup = await call('GET', `/api/backups/${id}`)
      return UNDER_WAY.includes(backup.status) ? undefined : backup
    },
    LIMIT_MS,
  )

/** What is done to a database in a sweep; answers the ids of what is to be looked at afterwards. */
async function work(kind: string, made: any, prepared: string): Promise<void> {
  const path = `/api/databases/${made.id}`
  if (kind === 'backup.create') await call('POST', `${path}/backup`)
  if (kind === 'backup.restore') await call('POST', `${path}/restore`, { backup_id: prepared })
  if (kind === 'database.copy_files') await call('PUT', path, { point_in_time: { enabled: true } })
  if (kind === 'database.recover') await call('POST', `${path}/restore`, { at: prepared })
}
async function prepare(kind: string, made: any): Promise<string> {
  let prepared = ''
  if (kind === 'backup.restore')
    prepared = (await backupEnded((await call('POST', `/api/databases/${made.id}/backup`)).id)).id
  if (kind === 'database.recover') {
    ask(made, 'SELECT pg_sleep(0.3)')
    prepared = ask(made, NOW)
    ask(made, 'SELECT pg_sleep(0.3)')
  }
  if (kind === 'backup.restore' || kind === 'database.recover') ask(made, `UPDATE notes SET word = 'new'`)
  return prepared
}

async function check(kind: string, point: string, id: string): Promise<void> {
  const after = await eventually(
    'The database running',
    async () => {
      const one = await settledDatabase(portreeve, id)
      return one.status === 'running' ? one : undefined
    },
    LIMIT_MS,
  )
  const state = await eventually('The rows being there', () => ask(after, STATE) || undefined, LIMIT_MS)
  const possible = [
    `${options.rows} old`,
    ...(kind === 'backup.create' || kind === 'database.copy_files' ? [] : [`${options.rows} new`]),
  ]
  if (!possible.includes(state)) faults.push(`${point}: the rows are ${state}`)
  if (servers(id).length !== 1) faults.push(`${point}: ${servers(id).length} servers`)
  if (kind === 'backup.create') {
    const [backup] = await call('GET', `/api/databases/${id}/backups`)
    const ended = await backupEnded(backup.id)
    if (ended.status !== 'succeeded') faults.push(`${point}: the backup ${ended.status}: ${ended.error}`)
  }
  if (is_logged(kind))
    await eventually(
      'The log being archived',
      async () =>
        (await call('GET', `/api/databases/${id}`)).point_in_time.status === 'active' ? true : undefined,
      LIMIT_MS,
    )
  const volumes = docker('volume', 'ls', '-q', '--filter', `label=portreeve.database=${id}`)
  const expected = [after.volume_id, after.previous_volume?.volume_id].filter(Boolean).sort()
  if (volumes.split('\n').sort().join() !== expected.join()) faults.push(`${point}: volumes ${volumes}`)
}

async function sweep(kind: string, point: string): Promise<void> {
  const made = await make(kind)
  const prepared = await prepare(kind, made)
  await portreeve.stop()
  await portreeve.start({ PORTREEVE_CRASH_AT: point })
  await work(kind, made, prepared).catch((error: unknown) => {
    // The process may be gone before it has answered.
    if (!(error instanceof TypeError)) throw error
  })
  await eventually(`The crash at ${point}`, () => (isAlive(portreeve.pid()) ? undefined : true), LIMIT_MS)
  if (options.database > 0) docker('kill', '--signal=KILL', ...servers(made.id))
  await portreeve.start()
  const began_ms = performance.now()
  await check(kind, point, made.id)
  recoveries.push(performance.now() - began_ms)
  await call('DELETE', `/api/databases/${made.id}?skip_backup=true`)
}

for (const [kind, steps] of Object.entries(STEPS))
  for (const step of steps)
    for (const side of ['before', 'after']) {
      const point = `${kind}.${step}:${side}`
      const known = faults.length
      await sweep(kind, point).catch((error: unknown) => faults.push(`${point}: ${(error as Error).message}`))
      const found = faults.slice(known)
      report.figure(point, found.length === 0 ? `recovered in ${ms(recoveries.at(-1)!)}` : found.join(' | '))
    }
report.figure('kills', recoveries.length)
report.figure('median recovery', ms(median(recoveries)))
report.check(
  'old rows or new rows, one server, nothing left over',
  faults.length === 0,
  faults.length === 0 ? 'always' : `\n    ${faults.join('\n    ')}`,
)
await portreeve.dispose()
report.end()
