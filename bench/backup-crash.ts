/**
 * Portreeve is killed with -9 before and after every step of a backup, of a restore, of a copy of files and of a
 * recovery to a moment; with `--database=1` the server of the database as well, with `--engine=1` the container
 * engine. After each the database holds what it held or what was restored, never a mix of both, on one server
 * and without a leftover. `npx node bench/backup-crash.ts [--rows=10000] [--database=0] [--engine=0] [--only=<point>]`
 */
import { eventually } from '#test/support/portreeve'
import { LIMIT_MS, type OpenDatabase, type Scene, sweepKillPoints } from './support/kill-points.ts'

const UNDER_WAY = ['queued', 'running', 'undoing']
/** Rows and which of the two contents they have: more than one word is a mix. */
const STATE = `SELECT count(*) || ' ' || string_agg(DISTINCT word, '+') FROM notes`
const NOW = `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const CHANGES_DATA = new Set(['backup.restore', 'database.recover'])
const made = new Map<string, OpenDatabase>()

const archived = (scene: Scene, id: string) =>
  eventually(
    'The log being archived',
    async () =>
      (await scene.call('GET', `/api/databases/${id}`)).point_in_time.status === 'active' ? true : undefined,
    LIMIT_MS,
  )
const backupEnded = ({ call }: Scene, id: string) =>
  eventually(
    `The backup ${id} ending`,
    async () => {
      const backup = await call('GET', `/api/backups/${id}`)
      return UNDER_WAY.includes(backup.status) ? undefined : backup
    },
    LIMIT_MS,
  )
const jobEnded = ({ call }: Scene, id: string) =>
  eventually(
    `The job ${id} ending`,
    async () => {
      const job = await call('GET', `/api/system/jobs/${id}`)
      return UNDER_WAY.includes(job.status) ? undefined : job
    },
    LIMIT_MS,
  )

/** A database whose rows all say «old»; the same one for all points of a kind. */
async function databaseFor(kind: string, scene: Scene): Promise<OpenDatabase> {
  const { call, ask, make, running } = scene
  const known = made.get(kind)
  if (!known) {
    const fresh = await make(kind === 'database.recover' ? { point_in_time: {} } : {})
    ask(fresh, `CREATE TABLE notes AS SELECT n AS id, 'old' AS word FROM generate_series(1, ${scene.rows}) n`)
    made.set(kind, fresh)
    if (kind === 'database.recover') await archived(scene, fresh.id)
    return fresh
  }
  const path = `/api/databases/${known.id}`
  if (CHANGES_DATA.has(kind) && (await call('GET', path)).previous_volume)
    await call('PUT', path, { previous_volume: 'remove' })
  if (kind === 'database.copy_files') await call('PUT', path, { point_in_time: { enabled: false } })
  const database = await running(known.id)
  if (CHANGES_DATA.has(kind)) ask(database, `UPDATE notes SET word = 'old'`)
  return database
}
/** What comes before the work, and what the work names: a backup or a moment. */
async function prepare(kind: string, scene: Scene, database: OpenDatabase): Promise<string> {
  const { call, ask } = scene
  let named = ''
  if (kind === 'backup.restore') {
    const { id } = await call('POST', `/api/databases/${database.id}/backup`)
    named = (await backupEnded(scene, id)).id
  }
  if (kind === 'database.recover') {
    await archived(scene, database.id)
    ask(database, 'SELECT pg_sleep(0.3)')
    named = ask(database, NOW)
    ask(database, 'SELECT pg_sleep(0.3)')
  }
  if (CHANGES_DATA.has(kind)) ask(database, `UPDATE notes SET word = 'new'`)
  return named
}
function work(kind: string, { call }: Scene, { id }: OpenDatabase, named: string): Promise<any> {
  const path = `/api/databases/${id}`
  const works: Record<string, () => Promise<any>> = {
    'backup.create': () => call('POST', `${path}/backup`),
    'backup.restore': () => call('POST', `${path}/restore`, { backup_id: named }),
    'database.copy_files': () => call('PUT', path, { point_in_time: { enabled: true } }),
    'database.recover': () => call('POST', `${path}/restore`, { at: named }),
  }
  return works[kind]!()
}

await sweepKillPoints({
  title: 'Every step of backups and restores of a PostgreSQL',
  steps: {
    'backup.create': ['dump', 'describe', 'retain'],
    'backup.restore': ['check', 'prepare', 'switch', 'finish'],
    'database.copy_files': ['copy', 'log', 'prune'],
    'database.recover': ['log', 'check', 'prepare', 'switch', 'finish'],
  },
  verdict: 'old rows or new rows, one server, nothing left over',
  images: ['postgres:17', 'haproxy:3.0-trixie'],
  async at(kind, scene) {
    const database = await databaseFor(kind, scene)
    const named = await prepare(kind, scene, database)
    let job_id: string | undefined
    await scene.die(database.id, async () => {
      job_id = (await work(kind, scene, database, named)).job_id
    })
    if (job_id !== undefined) {
      const { status, error } = await jobEnded(scene, job_id)
      if (status !== 'succeeded') scene.fault(`the restore ${status}: ${JSON.stringify(error)}`)
    }
    const after = await scene.running(database.id)
    const state = await eventually(
      'The rows being there',
      () => scene.ask(after, STATE) || undefined,
      LIMIT_MS,
    )
    const possible = ['old', ...(CHANGES_DATA.has(kind) && job_id === undefined ? ['new'] : [])]
    if (!possible.map((word) => `${scene.rows} ${word}`).includes(state)) scene.fault(`the rows are ${state}`)
    if (kind === 'backup.create') {
      const [backup] = await scene.call('GET', `/api/databases/${database.id}/backups`)
      const ended = await backupEnded(scene, backup.id)
      if (ended.status !== 'succeeded') scene.fault(`the backup ${ended.status}: ${ended.error}`)
    }
    if (kind.startsWith('database.')) await archived(scene, database.id)
    scene.checkLeftovers(after)
  },
})
