/**
 * Portreeve is killed with -9 before and after every step of making, rotating, upgrading and deleting a
 * PostgreSQL. After each the same rows must be there, under credentials that open it, on one server and without
 * a leftover. `npx node bench/database-crash.ts [--rows=10000]`
 */
import { settledDatabase } from '#test/support/databases'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { isAlive } from './support/alive.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'

const STEPS: Record<string, readonly string[]> = {
  start: ['image', 'volume', 'stop', 'start'],
  rotate: ['grant', 'publish', 'apps', 'revoke'],
  upgrade: ['image', 'isolate', 'copy', 'verify', 'switch'],
  delete: ['containers', 'volumes'],
}
const options = numberOptions({ rows: 10_000 })
const report = createReport('kill -9 of Portreeve at every step of the work on a PostgreSQL')
const faults: string[] = []
const recoveries: number[] = []
const portreeve: Portreeve = await startPortreeve()

const settled = (id: string) => settledDatabase(portreeve, id)
const servers = (id: string) =>
  docker('ps', '-q', '--filter', `label=portreeve.database=${id}`).split('\n').filter(Boolean)
const ask = (database: { id: string; username: string; password: string; database: string }, text: string) =>
  docker(
    ...['exec', '-e', `PGPASSWORD=${database.password}`, servers(database.id)[0] ?? 'none', 'psql'],
    ...['-h', '127.0.0.1', '-U', database.username, '-d', database.database, '-Atqc', text],
  )
const SUM = `SELECT count(*) || ' ' || md5(string_agg(body, '' ORDER BY id)) FROM notes`
let number = 0
const create = async () =>
  (
    await portreeve.call('POST', '/api/databases', {
      name: `crash-${(number += 1)}`,
      engine: 'postgres',
      version: '15',
    })
  ).body.data.id as string

/** Starts Portreeve so that it dies at a point, gives it the work, and starts it again after its death. */
async function dieAt(point: string, work: () => Promise<unknown>): Promise<void> {
  await portreeve.stop()
  await portreeve.start({ PORTREEVE_CRASH_AT: point })
  await work().catch((error: unknown) => {
    if (!(error instanceof TypeError)) throw error
  })
  await eventually(`The crash at ${point}`, () => (isAlive(portreeve.pid()) ? undefined : true), 90_000)
  await portreeve.start()
}
const WORK: Record<string, (id: string) => Promise<unknown>> = {
  start: (id) => portreeve.call('POST', `/api/databases/${id}/restart`),
  rotate: (id) => portreeve.call('POST', `/api/databases/${id}/credentials/rotate`),
  upgrade: (id) => portreeve.call('PUT', `/api/databases/${id}`, { version: '17' }),
  delete: (id) => portreeve.call('DELETE', `/api/databases/${id}?skip_backup=true`),
}

async function sweep(kind: string, point: string): Promise<void> {
  const id = await create()
  const made = await settled(id)
  ask(
    made,
    `CREATE TABLE notes AS SELECT n AS id, md5(n::text) AS body FROM generate_series(1, ${options.rows}) n`,
  )
  const before = ask(made, SUM)
  await dieAt(point, () => WORK[kind]!(id))
  const began_ms = performance.now()
  if (kind === 'delete') {
    await eventually('The database being gone', async () =>
      (await portreeve.call('GET', `/api/databases/${id}`)).status === 404 ? true : undefined,
    )
  } else {
    const after = await settled(id)
    if (after.status !== 'running' || after.last_error !== null)
      faults.push(`${point}: ${after.status} ${after.last_error}`)
    const now = await eventually('The rows being there', () => ask(after, SUM) || undefined)
    if (now !== before) faults.push(`${point}: the rows differ`)
    if (servers(id).length !== 1) faults.push(`${point}: ${servers(id).length} servers`)
    const volumes = docker('volume', 'ls', '-q', '--filter', `label=portreeve.database=${id}`)
    const expected = [after.volume_id, after.previous_volume?.volume_id].filter(Boolean).sort()
    if (volumes.split('\n').sort().join() !== expected.join()) faults.push(`${point}: volumes ${volumes}`)
    await portreeve.call('DELETE', `/api/databases/${id}?skip_backup=true`)
  }
  recoveries.push(performance.now() - began_ms)
}

for (const [kind, steps] of Object.entries(STEPS))
  for (const step of steps)
    for (const side of ['before', 'after']) {
      const point = `database.${kind}.${step}:${side}`
      const known = faults.length
      await sweep(kind, point).catch((error: unknown) => faults.push(`${point}: ${(error as Error).message}`))
      report.figure(
        point,
        faults.length === known ? `recovered in ${ms(recoveries.at(-1)!)}` : faults.slice(known).join(' | '),
      )
    }
report.figure('kills', recoveries.length)
report.figure('median recovery', ms(median(recoveries)))
report.check(
  'the same rows, one server, credentials that open, nothing left over',
  faults.length === 0,
  faults.length === 0 ? 'always' : `\n    ${faults.join('\n    ')}`,
)
await portreeve.dispose()
report.end()
