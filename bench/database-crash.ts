/**
 * Portreeve is killed with -9 before and after every step of restarting, rotating, upgrading and deleting a
 * PostgreSQL; with `--database=1` its servers as well, with `--engine=1` the container engine. After each the
 * same rows must be there, under credentials that open it, on one server and without a leftover.
 * `npx node bench/database-crash.ts [--rows=10000] [--database=0] [--engine=0] [--only=<point>]`
 */
import { eventually } from '#test/support/portreeve'
import { LIMIT_MS, type OpenDatabase, type Scene, sweepKillPoints } from './support/kill-points.ts'

const SUM = `SELECT count(*) || ' ' || md5(string_agg(body, '' ORDER BY id)) FROM notes`
const FILL = (rows: number) =>
  `CREATE TABLE notes AS SELECT n AS id, md5(n::text) AS body FROM generate_series(1, ${rows}) n`
const WORK: Record<string, (scene: Scene, id: string) => Promise<unknown>> = {
  'database.start': ({ call }, id) => call('POST', `/api/databases/${id}/restart`),
  'database.rotate': ({ call }, id) => call('POST', `/api/databases/${id}/credentials/rotate`),
  'database.upgrade': ({ call }, id) => call('PUT', `/api/databases/${id}`, { version: '17' }),
  'database.delete': ({ call }, id) => call('DELETE', `/api/databases/${id}?skip_backup=true`),
}
/** Work that leaves a database as it was may be done to the same one again. */
const REPEATABLE = new Set(['database.start', 'database.rotate'])
const made = new Map<string, OpenDatabase>()

async function databaseFor(kind: string, scene: Scene): Promise<OpenDatabase> {
  const known = made.get(kind)
  if (known && REPEATABLE.has(kind)) return scene.running(known.id)
  if (known && kind !== 'database.delete') await scene.remove(known.id)
  const fresh = await scene.make({ version: kind === 'database.upgrade' ? '15' : '17' })
  scene.ask(fresh, FILL(scene.rows))
  made.set(kind, fresh)
  return fresh
}

await sweepKillPoints({
  title: 'Every step of the work on a PostgreSQL',
  steps: {
    'database.start': ['image', 'volume', 'stop', 'start'],
    'database.rotate': ['grant', 'publish', 'apps', 'revoke'],
    'database.upgrade': ['image', 'isolate', 'copy', 'verify', 'switch'],
    'database.delete': ['containers', 'volumes'],
  },
  verdict: 'the same rows, one server, credentials that open, nothing left over',
  images: ['postgres:15', 'postgres:17', 'haproxy:3.0-trixie'],
  async at(kind, scene) {
    const database = await databaseFor(kind, scene)
    const before = scene.ask(database, SUM)
    await scene.die(database.id, () => WORK[kind]!(scene, database.id))
    if (kind === 'database.delete') {
      const path = `/api/databases/${database.id}`
      const gone = async () => ((await scene.portreeve.call('GET', path)).status === 404 ? true : undefined)
      return void (await eventually('The database being gone', gone, LIMIT_MS))
    }
    const after = await scene.running(database.id)
    if (after.last_error !== null) scene.fault(`last_error is ${after.last_error}`)
    const now = await eventually('The rows being there', () => scene.ask(after, SUM) || undefined, LIMIT_MS)
    if (now !== before) scene.fault('the rows differ')
    scene.checkLeftovers(after)
  },
})
