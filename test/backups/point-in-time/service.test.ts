import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendLog, type PretendedLog } from './pretend-log.ts'

const DAY_MS = 86_400_000

let api: TestApi
let log: PretendedLog
let id: string
beforeEach(async () => {
  api = await createTestApi()
  log = pretendLog(api)
  id = await make('orders', { point_in_time: { enabled: true, days: 3 } })
})
afterEach(() => api.close())

const make = async (name: string, more: object) => {
  const { status, body } = await api
    .as('developer')
    .post('/api/databases', { name, engine: 'postgres', ...more })
  expect(status, JSON.stringify(body)).toBe(201)
  await settle()
  return body.data.id as string
}
const settle = async () => {
  await api.services.jobs.idle()
  api.services.backups.point_in_time.run()
  await api.services.backups.point_in_time.settled()
  await api.services.jobs.idle()
}
const commit = async () => {
  log.commits += 1
  await settle()
}
const state = async (of = id) => (await api.as('developer').get(`/api/databases/${of}`)).body.data
const seen = async (of = id) =>
  (await api.as('developer').get(`/api/databases/${of}`)).body.data.point_in_time
const folder = () => join(api.kernel.config.data_directory, 'backups/archives/default')
const files = () =>
  existsSync(folder())
    ? readdirSync(folder(), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name, parentPath }) => join(parentPath, name))
    : []
const told = (type: string) => api.events().filter((event) => event.type === type)
const restore = (body: object, of = id) => api.as('owner').post(`/api/databases/${of}/restore`, body)

describe('the log of a database', () => {
  it('is archived from a first copy on, encrypted, and leaves nothing behind on its disk', async () => {
    await commit()
    const { status, earliest, latest, last_copy_at, waiting_bytes, error, ...settings } = await seen()
    expect([status, waiting_bytes, error]).toEqual(['active', 0, null])
    expect(settings).toMatchObject({ enabled: true, days: 3, encrypted: true, destination_id: null })
    expect([earliest <= latest, last_copy_at]).toEqual([true, earliest])
    expect(log.waiting.size).toBe(0)
    expect(files().every((path) => path.endsWith('.zst.enc'))).toBe(true)
    expect(files().some((path) => readFileSync(path).includes('ALL FILES'))).toBe(false)
  })
  it('reaches further without a piece while nothing is committed', async () => {
    const before = [(await seen()).latest, files().length] as const
    await settle()
    expect([(await seen()).latest > before[0], files().length]).toEqual([true, before[1]])
  })
  it('waits on the disk during an outage, which is told once, and then is whole again', async () => {
    renameSync(folder(), `${folder()}.away`)
    writeFileSync(folder(), 'no folder')
    await commit()
    const failing = await seen()
    expect([failing.status, failing.waiting_bytes > 0, failing.error]).toEqual([
      'failing',
      true,
      expect.any(String),
    ])
    expect(told('database.archive_failing')).toEqual([])
    api.fakes.clock.advance(6 * 60_000)
    await settle()
    await settle()
    expect(told('database.archive_failing').map(({ payload }) => payload)).toMatchObject([
      { database_id: id, waiting_bytes: failing.waiting_bytes },
    ])
    renameSync(folder(), `${folder()}.file`)
    renameSync(`${folder()}.away`, folder())
    await settle()
    expect([(await seen()).status, log.waiting.size]).toEqual(['active', 0])
    expect(told('database.archive_working')).toHaveLength(1)
    expect((await seen()).latest > failing.latest).toBe(true)
  })
  it('begins anew with a copy of its own after a part was left out, and says so', async () => {
    await commit()
    const { latest } = await seen()
    log.waiting.set('gap', Buffer.alloc(0))
    await settle()
    expect(told('database.archive_gap')).toMatchObject([{ payload: { complete_until: latest } }])
    await settle()
    expect((await seen()).status).toBe('active')
    expect(told('database.archive_copied')).toHaveLength(2)
  })
  it('is kept for its days: a copy a day, and no piece that no copy needs', async () => {
    for (let day = 0; day < 6; day += 1) {
      await commit()
      // A clock that goes ahead by a day at once may be wrong.
      for (let hours = 0; hours < 24; hours += 1) {
        api.fakes.clock.advance(DAY_MS / 24)
        await api.services.cleanup()
      }
      await commit()
    }
    const copies = files().filter((path) => path.includes('.tar.'))
    expect(copies).toHaveLength(4)
    const { earliest } = await seen()
    const age = api.fakes.clock.now() - Date.parse(earliest)
    expect([age >= 3 * DAY_MS, age < 5 * DAY_MS]).toEqual([true, true])
    const first = api.kernel.db.sql('SELECT min(first_piece) FROM log_copies').pluck().get() as string
    const pieces = files().filter((path) => !path.includes('.tar.'))
    expect(pieces.map((path) => path.split('/').at(-1)!).sort()[0]! >= first).toBe(true)
  })
  it('is copied daily again after the clock was far ahead for a while', async () => {
    await commit()
    const right = api.fakes.clock.now()
    api.fakes.clock.set('2036-01-01T00:00:00.000Z')
    await commit()
    api.fakes.clock.set(new Date(right + DAY_MS + 60_000).toISOString())
    const copies = () => files().filter((path) => path.includes('.tar.')).length
    const before = copies()
    for (const _again of [1, 2, 3]) await commit()
    expect(copies()).toBe(before + 1)
  })
  it('that ended is not dropped by a clock that is far ahead for a while', async () => {
    await commit()
    await api.as('developer').put(`/api/databases/${id}`, { point_in_time: { enabled: false } })
    await settle()
    const kept = files()
    await api.services.backups.point_in_time.tidy()
    api.fakes.clock.set('2036-01-01T00:00:00.000Z')
    await api.services.backups.point_in_time.tidy()
    expect(files()).toEqual(kept)
  })
  it('is turned on or off by saying so only: a change of the days leaves it as it is', async () => {
    const put = (point_in_time: object) => api.as('developer').put(`/api/databases/${id}`, { point_in_time })
    await put({ days: 5 })
    await settle()
    expect(await seen()).toMatchObject({ enabled: true, days: 5 })
    await put({ enabled: false })
    await settle()
    await put({ days: 7 })
    await settle()
    expect(await seen()).toMatchObject({ enabled: false })
  })
  it('is looked at at once when it is turned on of a server that runs', async () => {
    const plain = await make('plain', {})
    await api.as('developer').put(`/api/databases/${plain}`, { point_in_time: { enabled: true } })
    await expect.poll(async () => (await seen(plain)).status).toBe('active')
  })
  it('is not restored in place under another name', async () => {
    const answer = await api
      .as('owner')
      .post(`/api/databases/${id}/restore`, { at: new Date().toISOString(), name: 'copy' })
    expect([answer.status, answer.body.error.message]).toEqual([422, expect.stringMatching(/^name: .*«new»/)])
  })
  it('ends when it is turned off, can still be gone back to for its days, and goes with its database', async () => {
    await commit()
    await api.as('developer').put(`/api/databases/${id}`, { point_in_time: { enabled: false } })
    await settle()
    expect(await seen()).toMatchObject({ status: 'off', enabled: false, earliest: expect.any(String) })
    await api.services.backups.point_in_time.tidy()
    expect(files().length).toBeGreaterThan(0)
    await api.as('owner').delete(`/api/databases/${id}?skip_backup=true`)
    await api.services.jobs.idle()
    await api.services.backups.point_in_time.tidy()
    expect(files()).toEqual([])
  })
  it('that is past its days stays while a recovery is to read it, and goes after that', async () => {
    await commit()
    const { latest: at } = await seen()
    await api.as('developer').put(`/api/databases/${id}`, { point_in_time: { enabled: false } })
    await settle()
    await api.services.jobs.stop()
    const asked = await restore({ at, mode: 'new', name: 'then' })
    expect(asked.status, JSON.stringify(asked.body)).toBe(201)
    const there = files()
    for (let hours = 0; hours < 5 * 24; hours += 1) {
      api.fakes.clock.advance(DAY_MS / 24)
      await api.services.cleanup()
    }
    await api.services.backups.point_in_time.tidy()
    expect(files()).toEqual(there)
    api.services.jobs.start()
    await settle()
    expect(told('database.recovery_failed').map(({ payload }) => payload.error)).toEqual([])
    expect((await state(asked.body.data.target_id)).status).toBe('running')
    await api.services.backups.point_in_time.tidy()
    expect(files()).toEqual([])
  })
  it('keeps its destination from being removed', async () => {
    const { body } = await api.as('admin').post('/api/storage-providers', {
      name: 'Elsewhere',
      kind: 'local',
      config: { folder: 'elsewhere' },
    })
    const destination_id = body.data.id
    await api.as('developer').put(`/api/databases/${id}`, { point_in_time: { destination_id } })
    await settle()
    expect((await api.as('admin').delete(`/api/storage-providers/${destination_id}`)).status).toBe(409)
  })
  it('is refused for engines without one and for a destination that there is not', async () => {
    const redis = await api
      .as('developer')
      .post('/api/databases', { name: 'cache', engine: 'redis', point_in_time: {} })
    expect([redis.status, redis.body.error.details[0].path]).toEqual([422, 'point_in_time'])
    const nowhere = await api
      .as('developer')
      .put(`/api/databases/${id}`, { point_in_time: { destination_id: 'dst_nowhere' } })
    expect([nowhere.status, nowhere.body.error.details[0].path]).toEqual([
      422,
      'point_in_time.destination_id',
    ])
  })
})

describe('going back to a moment', () => {
  it('answers 201 with the job, in place and as a new database', async () => {
    await commit()
    const { latest: at } = await seen()
    const answer = await restore({ at })
    expect([answer.status, answer.body.data]).toEqual([
      201,
      {
        job_id: expect.any(String),
        backup_id: null,
        at,
        mode: 'in_place',
        target: 'database',
        target_id: id,
        status: 'queued',
      },
    ])
    expect((await restore({ at })).status).toBe(409)
    await api.services.jobs.idle()
    expect((await state()).status).toBe('running')
    const unnamed = await restore({ at, mode: 'new' })
    expect([unnamed.status, unnamed.body.error.details[0].path]).toEqual([422, 'name'])
    const made = await restore({ at, mode: 'new', name: 'copy' })
    expect(made.body.data.target_id).not.toBe(id)
    await api.services.jobs.idle()
    expect((await state(made.body.data.target_id)).status).toBe('running')
    expect(told('database.recovered').map(({ payload }) => payload)).toMatchObject([
      { database_id: id, at, mode: 'in_place' },
      { database_id: id, at, mode: 'new', restored_id: made.body.data.target_id },
    ])
  })
  it('starts the server that has the end of the log, when nothing else does since it ended', async () => {
    await api.services.jobs.stop()
    log.commits += 1
    const at = api.fakes.clock.iso()
    expect((await restore({ at })).status).toBe(201)
    const { volume_id: release_id } = await state()
    const [server] = await api.fakes.engine.instances({ release_id })
    await api.fakes.engine.vanish(server!.id)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await state()).toMatchObject({ status: 'running', last_error: null })
    expect(told('database.recovered')).toHaveLength(1)
  })
  it('is refused before anything changes when a bit of a piece or of the copy is another one', async () => {
    await commit()
    const { latest: at } = await seen()
    const { volume_id } = (await api.as('developer').get(`/api/databases/${id}`)).body.data
    for (const path of files()) {
      const whole = readFileSync(path)
      const damaged = Buffer.from(whole)
      damaged[damaged.length >> 1]! ^= 1
      writeFileSync(path, damaged)
      const { body } = await restore({ at })
      await api.services.jobs.idle()
      const job = (await api.as('owner').get(`/api/system/jobs/${body.data.job_id}`)).body.data
      const is_needed = job.status === 'failed'
      if (is_needed) expect(job.error).toMatchObject({ code: 'archive_damaged', step: 'check' })
      if (path.includes('.tar.')) expect(is_needed).toBe(true)
      if (!is_needed) break
      const now = (await api.as('developer').get(`/api/databases/${id}`)).body.data
      expect([now.volume_id, now.status]).toEqual([volume_id, 'running'])
      writeFileSync(path, whole)
    }
    expect(told('database.recovery_failed').length).toBeGreaterThan(1)
  })
  it.each([
    ['a moment to come', () => ({ at: new Date(api.fakes.clock.now() + DAY_MS).toISOString() }), 'at'],
    ['a moment before the first copy', () => ({ at: '2020-01-01T00:00:00Z' }), 'at'],
    ['both a backup and a moment', () => ({ at: '2020-01-01T00:00:00Z', backup_id: 'bkp_x' }), 'backup_id'],
    ['neither', () => ({}), 'backup_id'],
    ['what is no moment', () => ({ at: 'yesterday' }), 'at'],
    ['an offset without its minutes', () => ({ at: '2020-01-01T00:00:00+05' }), 'at'],
  ])('is refused for %s', async (_name, body, path) => {
    await commit()
    const answer = await restore(body())
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, path])
  })
  it('is a conflict while nothing was archived, and 422 for other engines', async () => {
    const plain = await make('plain', {})
    expect((await restore({ at: api.fakes.clock.iso() }, plain)).status).toBe(409)
    const { body } = await api.as('developer').post('/api/databases', { name: 'cache', engine: 'redis' })
    const answer = await restore({ at: api.fakes.clock.iso() }, body.data.id)
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, 'at'])
  })
})

it('an archive that fails is an alert, until it works again', async () => {
  api.services.monitoring.alerts.start()
  const alerts = async () =>
    (await api.as('viewer').get('/api/monitoring/alerts/history')).body.data as {
      message: string
      resolved_at: string | null
    }[]
  const { project_id, name } = await state()
  const emit = (what: string) =>
    api.services.events.append({
      type: `database.${what}`,
      project_id,
      payload: { database_id: id, name, message: 'Gone.' },
    })
  emit('archive_failing')
  expect(await alerts()).toMatchObject([{ message: expect.stringContaining('orders'), resolved_at: null }])
  emit('archive_working')
  expect(await alerts()).toMatchObject([{ resolved_at: expect.any(String) }])
})
