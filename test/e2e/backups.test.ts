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
  {
    engine: 'redis',
    argv: ({ username, password }) => [
      ...['env', `REDISCLI_AUTH=${password}`, 'redis-cli', '--user', username, '-e', 'eval'],
    ],
    fill: `for i = 1, ${ROWS} do redis.call('set', 'kept:' .. i, redis.sha1hex(i)) end`,
    write: `for i = 1, 2000 do redis.call('incr', 'growing') redis.call('set', 'growing:' .. redis.call('get', 'growing'), 1) end`,
    checksum: `local sum = '' for i = 1, ${ROWS} do sum = redis.sha1hex(sum .. (redis.call('get', 'kept:' .. i) or '')) end return sum`,
    lose: `for i = 1, ${ROWS} do redis.call('del', 'kept:' .. i) end`,
  },
]

async function ask(client: Client, database: Database, text: string): Promise<string> {
  const container = docker('ps', '-q', '--filter', `label=portreeve.database=${database.id}`)
  const tail = client.engine === 'redis' ? [text, '0'] : [text]
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
  it.each(CLIENTS)('is verified and restored: $engine', async (client) => {
    const { engine } = client
    const asked = await portreeve.call('POST', '/api/databases', { name: `kept-${engine}`, engine })
    expect(asked.status, JSON.stringify(asked.body)).toBe(201)
    const made = await running(asked.body.data.id)
    await ask(client, made, client.fill)
    const checksum = await ask(client, made, client.checksum)

    let writing = true
    const writer = (async () => {
      let rounds = 0
      for (; writing; rounds += 1) await ask(client, made, client.write)
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

    await ask(client, made, client.lose)
    const restore = await portreeve.call('POST', `/api/databases/${made.id}/restore`, {
      backup_id: backup.id,
    })
    expect(restore.status, JSON.stringify(restore.body)).toBe(201)
    const restored = await running(made.id, made.volume_id)
    expect(await ask(client, restored, client.checksum)).toBe(checksum)
    expect(restored.previous_volume.volume_id).toBe(made.volume_id)
    await portreeve.call('DELETE', `/api/databases/${made.id}?skip_backup=true`)
  })
})
