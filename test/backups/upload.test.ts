import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PLATFORM } from '#server/kernel/access'
import type { ApiError } from '#server/kernel/errors'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendServer, type PretendedServer } from '../databases/server.ts'

let api: TestApi
let server: PretendedServer
let id: string
/** What begins as dumps of PostgreSQL do. */
const DUMP = Buffer.from('PGDMP of another server')

beforeEach(async () => {
  api = await createTestApi()
  server = pretendServer(api)
  id = (await api.as('developer').post('/api/databases', { name: 'orders', engine: 'postgres' })).body.data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

const send = async (
  raw: Buffer,
  type = 'application/octet-stream',
  caller: 'owner' | 'developer' = 'owner',
) => {
  const answer = await api.request('POST', `/api/databases/${id}/restore`, {
    as: caller,
    raw,
    headers: { 'content-type': type },
  })
  await api.services.jobs.idle()
  return answer
}
const database = async () => (await api.as('developer').get(`/api/databases/${id}`)).body.data
const backups = async () => (await api.as('developer').get('/api/backups')).body.data
const inputs = () => {
  const execs = api.fakes.engine.calls.filter(({ method }) => method === 'exec')
  return execs.filter(({ args }) => (args[1] as { command: string[] }).command[0] === 'pg_restore').length
}

describe('an uploaded dump', () => {
  it.each([
    ['as it is', DUMP, 'application/octet-stream'],
    ['packed with gzip', gzipSync(DUMP), 'application/gzip'],
    ['packed with zstd', zstdCompressSync(DUMP), 'application/zstd'],
  ])('is kept as a backup and takes the place of the data: %s', async (_how, raw, type) => {
    const before = await database()
    const { status, body } = await send(raw, type)
    expect([status, body.data]).toMatchObject([201, { mode: 'in_place', target_id: id, status: 'queued' }])
    const after = await database()
    expect([after.status, after.previous_volume.volume_id]).toEqual(['running', before.volume_id])
    expect(await backups()).toMatchObject([
      { id: body.data.backup_id, trigger: 'upload', status: 'succeeded', original_bytes: DUMP.length },
    ])
    expect(inputs()).toBe(1)
  })
  it.each([
    ['nothing', Buffer.alloc(0), 'is empty'],
    ['SQL for psql', Buffer.from('DROP TABLE x; \\! id'), 'pg_dump --format=custom'],
    ['packed nonsense', gzipSync('nothing'), 'is no dump of PostgreSQL'],
    [
      'a pack that is cut off',
      gzipSync(Buffer.concat([DUMP, Buffer.alloc(9999, 'ab')])).subarray(0, 40),
      'cut off',
    ],
  ])('of %s is refused with 422, and nothing is touched', async (_what, raw, message) => {
    const { status, body } = await send(raw)
    expect([status, body.error.message]).toEqual([422, expect.stringContaining(message)])
    expect([(await database()).previous_volume, inputs()]).toEqual([null, 0])
    expect((await backups()).filter((one: any) => one.status === 'succeeded')).toEqual([])
    expect(api.fakes.engine.volumes()).toHaveLength(1)
  })
  it.each([
    ['of MariaDB', '/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19-11.8.2\n', 'cut off'],
    ['of MySQL', '-- MySQL dump 10.13  Distrib 8.4.0\n', 'cut off'],
    ['of nothing but zeros', '\0'.repeat(5000), 'is no dump of MariaDB'],
  ])('that is cut off is refused where only its last line tells: %s', async (_whose, begin, message) => {
    await api.as('developer').post('/api/databases', { name: 'texts', engine: 'mariadb' })
    await api.services.jobs.idle()
    id = (await api.as('developer').get('/api/databases?q=texts')).body.data[0].id
    const table = 'CREATE TABLE `a` (\n  `id` int(11)\n);\n'.repeat(200)
    const { status, body } = await send(Buffer.from(begin + table))
    expect([status, body.error?.message]).toEqual([422, expect.stringContaining(message)])
    expect((await database()).previous_volume).toBeNull()
    const end = '-- Dump completed on 2026-11-27 12:40:13\n'
    if (!begin.startsWith('\0')) expect((await send(Buffer.from(begin + table + end))).status).toBe(201)
    expect((await send(Buffer.from(table))).status).toBe(201)
  })
  it('that the server refuses leaves the old data', async () => {
    server.failing.set('pg_restore', 1)
    expect((await send(DUMP)).status).toBe(201)
    const { status, previous_volume } = await database()
    expect([status, previous_volume]).toEqual(['running', null])
  })
  it('that cannot be loaded says why, and not what stands behind the reason', async () => {
    server.failing.set('pg_restore', 1)
    server.complaint = [
      'pg_restore: error: could not execute query: ERROR:  permission denied to create extension "timescaledb"',
      'HINT:  Must be superuser to create this extension.',
      'Command was: CREATE EXTENSION timescaledb',
      ...Array.from({ length: 40 }, () => '    WITH'),
      ');',
      '',
    ].join('\n')
    const { job_id } = (await send(DUMP)).body.data
    expect((await api.as('owner').get(`/api/system/jobs/${job_id}`)).body.data.error).toMatchObject({
      message: expect.stringMatching(/permission denied to create extension "timescaledb"$/),
      hint: expect.stringMatching(/^Nothing was changed\./),
    })
  })
  it('packed so that unpacking takes much memory is refused, and levels up to 19 are not', async () => {
    const long = Buffer.concat([DUMP, Buffer.alloc(9 * 1024 ** 2)])
    const packed = (windowLog: number, level: number) =>
      zstdCompressSync(long, {
        params: {
          [constants.ZSTD_c_windowLog]: windowLog,
          [constants.ZSTD_c_compressionLevel]: level,
          // The size beforehand would have the frame need no more than that.
          [constants.ZSTD_c_contentSizeFlag]: 0,
        },
      })
    const { status, body } = await send(packed(27, 1))
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('at a level up to 19')])
    expect((await send(packed(23, 19))).status).toBe(201)
  })
  it('is one too many while two of its project are received, which memory is held for', async () => {
    const ends: (() => void)[] = []
    const slow = () => {
      async function* source() {
        yield DUMP
        await new Promise<void>((resolve) => ends.push(resolve))
      }
      return api.services.backups.restoreUpload(PLATFORM, id, source())
    }
    const received = [slow(), slow()].map((one) => one.catch((error: ApiError) => error.code))
    await expect.poll(() => ends.length).toBe(2)
    const { status, body } = await send(DUMP)
    expect([status, body.error.code]).toEqual([429, 'RATE_LIMITED'])
    expect((await backups()).length).toBe(2)
    for (const end of ends) end()
    await Promise.all(received)
    await api.services.jobs.idle()
    expect((await send(DUMP)).status).toBe(201)
  })
  it('that was being received when Portreeve was killed has failed, and takes none of the disk', async () => {
    await send(DUMP)
    const { db, config } = api.kernel
    // As the row and the files are in the middle of it.
    db.sql(`UPDATE backups SET status = 'running'`).run()
    const path = join(
      config.data_directory,
      'backups/archives/default',
      db.sql('SELECT object_key FROM backups').pluck().get() as string,
    )
    writeFileSync(`${path}.partial`, 'half')
    api.services.backups.settleReceived()
    await expect.poll(() => readdirSync(dirname(path))).toEqual([])
    expect(await backups()).toMatchObject([
      { status: 'failed', error: expect.stringContaining('ended while') },
    ])
  })
  it('that fails where its destination lets nothing go leaves nothing once that does', async () => {
    const { db, config } = api.kernel
    const pathOfRow = () =>
      join(
        config.data_directory,
        'backups/archives/default',
        db.sql('SELECT object_key FROM backups').pluck().get() as string,
      )
    // Nothing can be written in the place of a folder, nor is that removed as a file is.
    async function* source() {
      yield DUMP
      mkdirSync(join(`${pathOfRow()}.manifest.json`, 'held'), { recursive: true })
    }
    await expect(api.services.backups.restoreUpload(PLATFORM, id, source())).rejects.toThrow()
    expect([existsSync(pathOfRow()), (await backups())[0].status]).toEqual([true, 'failed'])
    await api.services.backups.removeLeft()
    expect(existsSync(pathOfRow())).toBe(true)
    rmSync(`${pathOfRow()}.manifest.json`, { recursive: true })
    await api.services.backups.removeLeft()
    expect(readdirSync(dirname(pathOfRow()))).toEqual([])
  })
  it('is nothing to developers, another type is 415, and JSON still names a backup', async () => {
    expect((await send(DUMP, 'application/octet-stream', 'developer')).status).toBe(403)
    expect((await send(DUMP, 'text/plain')).status).toBe(415)
    const { body } = await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id: 'bkp_none' })
    expect(body.error.code).toMatch(/NOT_FOUND|VALIDATION_ERROR/)
  })
})
