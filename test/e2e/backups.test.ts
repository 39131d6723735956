import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { docker, eventually, type Portreeve } from '#test/support/portreeve'
import { useForge } from './support/forge.ts'

const server = useForge()
let portreeve: Portreeve
beforeAll(() => {
  ;({ portreeve } = server)
})
const run = promisify(execFile)
const show = async (path: string) => (await portreeve.call('GET', path)).body.data
const ROWS = 100_000
/** Servers of several engines start, dump and load at once, on machines that do other work. */
const SLOW_MS = 400_000

interface Client {
  engine: string
  argv(database: Database): string[]
  fill: string
  /** Goes on while the backup is made. */
  write: string
  /** Of what was there before the backup began. */
  checksum: string
  /** Takes everything away. */
  lose: string
}
interface Database {
  id: string
  username: string
  password: string
  database: string
}
const CLIENTS: Client[] = [
  {
    engine: 'postgres',
    argv: ({ username, password, database }) => [
      ...['env', `PGPASSWORD=${password}`, 'psql', '-h', '127.0.0.1', '-U', username, '-d', database],
      ...['-v', 'ON_ERROR_STOP=1', '-qAtc'],
    ],
    fill: `CREATE TABLE kept AS SELECT i, md5(i::text) AS t FROM generate_series(1, ${ROWS}) i; CREATE TABLE growing (i int)`,
    write: `INSERT INTO growing SELECT generate_series(1, 2000)`,
    checksum: `SELECT count(*), md5(string_agg(i || t, ',' ORDER BY i)) FROM kept`,
    lose: 'DROP TABLE kept',
  },
  {
    engine: 'mariadb',
    argv: ({ username, password, database }) => [
      ...['env', `MYSQL_PWD=${password}`, 'mariadb', '-h127.0.0.1', `-u${username}`, database, '-Ne'],
    ],
    fill: `CREATE TABLE kept (i INT PRIMARY KEY, t CHAR(32)); INSERT INTO kept SELECT seq, MD5(seq) FROM seq_1_to_${ROWS}; CREATE TABLE growing (i INT)`,
    write: 'INSERT INTO growing SELECT seq FROM seq_1_to_2000',
    checksum: 'SELECT COUNT(*), BIT_XOR(CRC32(CONCAT(i, t))), SUM(i) FROM kept',
    lose: 'DROP TABLE kept',
  },
  ...['redis', 'valkey'].map((engine) => ({
    engine,
    argv: ({ username, password }: Database) => [
      // Either client reads the name that was there before the two went their ways.
      ...['env', `REDISCLI_AUTH=${password}`, `${engine}-cli`, '--user', username, '-e', 'eval'],
    ],
    fill: `for i = 1, ${ROWS} do redis.call('set', 'kept:' .. i, redis.sha1hex(i)) end`,
    write: `for i = 1, 2000 do redis.call('incr', 'growing') redis.call('set', 'growing:' .. redis.call('get', 'growing'), 1) end`,
    checksum: `local sum = '' for i = 1, ${ROWS} do sum = redis.sha1hex(sum .. (redis.call('get', 'kept:' .. i) or '')) end return sum`,
    lose: `for i = 1, ${ROWS} do redis.call('del', 'kept:' .. i) end`,
  })),
]

async function request(client: Client, database: Database, text: string): Promise<string> {
  const container = docker('ps', '-q', '--filter', `label=portreeve.database=${database.id}`)
  const tail = client.argv(database).at(-1) === 'eval' ? [text, '0'] : [text]
  const { stdout } = await run('docker', ['exec', container, ...client.argv(database), ...tail])
  return stdout.trim()
}
const running = (id: string, since?: string) =>
  eventually(
    `The database ${id} running`,
    async () => {
      const database = await show(`/api/databases/${id}`)
      return database.status === 'running' && database.volume_id !== since ? database : undefined
    },
    120_000,
  )
const ended = (id: string, of: (backup: any) => string | undefined) =>
  eventually(
    `The work on ${id} ending`,
    async () => {
      const backup = await show(`/api/backups/${id}`)
      return ['succeeded', 'failed'].includes(of(backup) ?? '') ? backup : undefined
    },
    120_000,
  )

describe.concurrent('a backup that is made while clients write', () => {
  it.each(CLIENTS)(
    'is verified and restored: $engine',
    async (client) => {
      const { engine } = client
      const asked = await portreeve.call('POST', '/api/databases', { name: `kept-${engine}`, engine })
      expect(asked.status, JSON.stringify(asked.body)).toBe(201)
      const made = await running(asked.body.data.id)
      await request(client, made, client.fill)
      const checksum = await request(client, made, client.checksum)

      let writing = true
      const writer = (async () => {
        let rounds = 0
        for (; writing; rounds += 1) await request(client, made, client.write)
        return rounds
      })()
      const { body } = await portreeve.call('POST', `/api/databases/${made.id}/backup`)
      const backup = await ended(body.data.id, ({ status }) => status)
      writing = false
      expect(backup, backup.error).toMatchObject({ status: 'succeeded', encrypted: true })
      expect(await writer).toBeGreaterThan(0)

      await portreeve.call('POST', `/api/backups/${backup.id}/verify`)
      const verified = await ended(backup.id, ({ verification }) => verification?.status)
      expect(verified.verification, verified.verification.error).toMatchObject({ status: 'succeeded' })
      expect(verified.verification.rows).toBeGreaterThanOrEqual(ROWS)

      await request(client, made, client.lose)
      const restore = await portreeve.call('POST', `/api/databases/${made.id}/restore`, {
        backup_id: backup.id,
      })
      expect(restore.status, JSON.stringify(restore.body)).toBe(201)
      const restored = await running(made.id, made.volume_id)
      expect(await request(client, restored, client.checksum)).toBe(checksum)
      expect(restored.previous_volume.volume_id).toBe(made.volume_id)
      await portreeve.call('DELETE', `/api/databases/${made.id}?skip_backup=true`)
    },
    SLOW_MS,
  )
})

describe('PostgreSQL whose log is archived', () => {
  const [client] = CLIENTS as [Client]
  const active = (id: string, volume?: string) =>
    eventually(
      `The log of ${id} being archived`,
      async () => {
        const database = await show(`/api/databases/${id}`)
        const { status, earliest, error } = database.point_in_time
        expect(error).toBeNull()
        const is_new = volume === undefined || database.volume_id !== volume
        return is_new && status === 'active' && earliest ? database : undefined
      },
      120_000,
    )
  /** A moment after everything so far and before everything to come. */
  const moment = async (database: Database) => {
    await request(client, database, 'SELECT pg_sleep(0.5)')
    const [at] = (
      await request(
        client,
        database,
        `SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      )
    ).split('\n')
    await request(client, database, 'SELECT pg_sleep(0.5)')
    return at!
  }
  const restored = async (id: string, body: object) => {
    const answer = await portreeve.call('POST', `/api/databases/${id}/restore`, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    const { job_id, target_id } = answer.body.data
    const job = await eventually(
      `The recovery ${job_id} ending`,
      async () => {
        const found = await show(`/api/system/jobs/${job_id}`)
        return ['succeeded', 'failed'].includes(found.status) ? found : undefined
      },
      180_000,
    )
    expect(job, JSON.stringify(job)).toMatchObject({ status: 'succeeded' })
    return running(target_id)
  }
  const names = (database: Database) =>
    request(client, database, `SELECT string_agg(name, ',' ORDER BY name) FROM notes`)

  it(
    'goes back to the second, into a new database and in place, and on from there',
    async () => {
      const asked = await portreeve.call('POST', '/api/databases', {
        name: 'to-the-second',
        engine: 'postgres',
        point_in_time: { days: 2 },
      })
      expect(asked.status, JSON.stringify(asked.body)).toBe(201)
      const made = await active(asked.body.data.id)
      await request(client, made, `CREATE TABLE notes (name text); INSERT INTO notes VALUES ('first')`)
      const first = await moment(made)
      await request(client, made, `INSERT INTO notes VALUES ('second')`)
      const second = await moment(made)
      await request(client, made, 'DROP TABLE notes')
      await moment(made)

      const back = await restored(made.id, { at: second })
      expect(back.previous_volume.volume_id).toBe(made.volume_id)
      expect(await names(back)).toBe('first,second')

      // The log of the new data is archived from a copy of its own, and what was before can still be gone back to.
      const again = await active(made.id, made.volume_id)
      await eventually(
        'A copy of the new data',
        async () => {
          const { point_in_time } = await show(`/api/databases/${made.id}`)
          return point_in_time.last_copy_at > second ? point_in_time : undefined
        },
        120_000,
      )
      await request(client, again, `INSERT INTO notes VALUES ('third')`)
      const third = await moment(again)
      await request(client, again, 'DELETE FROM notes')
      const later = await restored(made.id, { at: third, mode: 'new', name: 'as-it-became' })
      expect(await names(later)).toBe('first,second,third')
      const earlier = await restored(made.id, { at: first, mode: 'new', name: 'as-it-began' })
      expect(await names(earlier)).toBe('first')
      expect([earlier.previous_volume, earlier.point_in_time.enabled]).toEqual([null, false])
    },
    SLOW_MS,
  )
})

describe('F5: kill -9 in the middle of a restore', () => {
  const [client] = CLIENTS as [Client]
  const isGone = (pid: number) => {
    try {
      process.kill(pid, 0)
      return undefined
    } catch {
      return true
    }
  }
  it('of Portreeve and of the database at once, around the switch: old rows or new rows, never a mix', async () => {
    const asked = await portreeve.call('POST', '/api/databases', { name: 'swept', engine: 'postgres' })
    const made = await running(asked.body.data.id)
    await request(client, made, `CREATE TABLE words AS SELECT 'old' AS word FROM generate_series(1, 1000)`)
    const { body } = await portreeve.call('POST', `/api/databases/${made.id}/backup`)
    await ended(body.data.id, ({ status }) => status)
    for (const point of ['backup.restore.switch:before', 'backup.restore.switch:after']) {
      await request(client, await running(made.id), `UPDATE words SET word = 'new'`)
      await portreeve.stop()
      await portreeve.start({ PORTREEVE_CRASH_AT: point })
      const pid = portreeve.pid()
      const answer = await portreeve.call('POST', `/api/databases/${made.id}/restore`, {
        backup_id: body.data.id,
      })
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
      await eventually(`The crash at ${point}`, () => isGone(pid), 120_000)
      const servers = docker('ps', '-q', '--filter', `label=portreeve.database=${made.id}`)
      docker('kill', '--signal=KILL', ...servers.split('\n').filter(Boolean))
      await portreeve.start()
      const job = await eventually(
        `The restore ending after ${point}`,
        async () => {
          const found = await show(`/api/system/jobs/${answer.body.data.job_id}`)
          return ['succeeded', 'failed'].includes(found.status) ? found : undefined
        },
        180_000,
      )
      const after = await running(made.id)
      const state = await eventually('The server answering', () =>
        request(client, after, `SELECT count(*) || string_agg(DISTINCT word, '+') FROM words`),
      )
      expect([job.status, state], JSON.stringify(job)).toEqual(['succeeded', '1000old'])
      // The original is kept through both, until somebody lets it go.
      expect(after.previous_volume.volume_id).not.toBe(after.volume_id)
      await portreeve.call('PUT', `/api/databases/${made.id}`, { previous_volume: 'remove' })
      await eventually('The original being gone', async () =>
        (await show(`/api/databases/${made.id}`)).previous_volume === null ? true : undefined,
      )
    }
  })
})
