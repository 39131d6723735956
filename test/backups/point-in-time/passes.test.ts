import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SILENCE_LIMIT_MS } from '#server/backups/point-in-time/shipping'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendLog, type PretendedLog } from './pretend-log.ts'

const DAY_MS = 86_400_000
const ON = { point_in_time: { enabled: true } }
const OFF = { point_in_time: { enabled: false } }

let api: TestApi
let log: PretendedLog
beforeEach(async () => {
  api = await createTestApi()
  log = pretendLog(api)
})
afterEach(async () => {
  vi.restoreAllMocks()
  await api.close()
})

const archiving = () => api.services.backups.point_in_time
const pass = () => {
  archiving().run()
  return archiving().settled()
}
const create = async (name: string, more: object) => {
  const { status, body } = await api
    .as('developer')
    .post('/api/databases', { name, engine: 'postgres', ...more })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data.id as string
}
const settle = async () => {
  await api.services.jobs.idle()
  await pass()
  await api.services.jobs.idle()
}
const make = async (name: string, more: object) => {
  const id = await create(name, more)
  await settle()
  return id
}
const change = async (id: string, body: object) => {
  const answer = await api.as('developer').put(`/api/databases/${id}`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}
const seen = async (id: string) =>
  (await api.as('developer').get(`/api/databases/${id}`)).body.data.point_in_time
const archives = () =>
  api.kernel.db.sql('SELECT id, status FROM log_archives ORDER BY rowid').all() as {
    id: string
    status: string
  }[]

describe('turning it on and off', () => {
  it('begins nothing before the server was started anew with its log kept', async () => {
    const id = await make('orders', {})
    await api.services.jobs.stop()
    await change(id, ON)
    await pass()
    expect([archives(), log.pieces]).toEqual([[], 1])
    api.services.jobs.start()
    await settle()
    expect([archives(), log.pieces > 1]).toEqual([[{ id: expect.any(String), status: 'active' }], true])
  })
  it('does not go on with an archive that misses what was committed in between', async () => {
    const id = await make('orders', ON)
    await change(id, OFF)
    await api.services.jobs.idle()
    await change(id, ON)
    await settle()
    expect(archives().map(({ status }) => status)).toEqual(['closed', 'active'])
  })
})

describe('a server that answers nothing', () => {
  it('holds up no other, is asked once at a time, and is told as failing after its time', async () => {
    const [stuck, well] = [await make('stuck', ON), await make('well', ON)]
    const { latest: last } = await seen(stuck)
    const deadline = new AbortController()
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((duration_ms) =>
      duration_ms === SILENCE_LIMIT_MS ? deadline.signal : timeout(duration_ms),
    )
    const { volume_id } = (await api.as('developer').get(`/api/databases/${stuck}`)).body.data
    log.frozen.set(volume_id, 0)
    for (let round = 0; round < 3; round += 1) {
      const { latest } = await seen(well)
      archiving().run()
      await vi.waitFor(async () => expect((await seen(well)).latest > latest).toBe(true), 60_000)
    }
    expect(log.frozen.get(volume_id)).toBe(1)
    expect([(await seen(stuck)).status, (await seen(stuck)).latest]).toEqual(['active', last])
    deadline.abort(new DOMException('Too late.', 'TimeoutError'))
    await archiving().settled()
    expect(await seen(stuck)).toMatchObject({
      status: 'failing',
      error: expect.stringContaining('did not answer within 5 minutes'),
    })
    expect((await seen(well)).status).toBe('active')
  })
})

it('a log of which the project may keep no more is told as failing, and goes on once there is room', async () => {
  const id = await make('orders', ON)
  const project_id = api.services.http.default_project()
  const allow = (backup_bytes: number | null) =>
    api.as('admin').put(`/api/projects/${project_id}`, { quotas: { backup_bytes } })
  await allow(1)
  log.commits += 1
  await settle()
  expect(await seen(id)).toMatchObject({
    status: 'failing',
    error: expect.stringContaining('raise the quota backup_bytes'),
  })
  expect((await api.as('developer').post(`/api/databases/${id}/backup`)).status).toBe(409)
  await allow(null)
  await settle()
  expect((await seen(id)).status).toBe('active')
})

describe('a copy of an archive that ends meanwhile', () => {
  it('is no failure to be told: nobody wants it any more', async () => {
    const id = await make('orders', ON)
    api.fakes.clock.advance(2 * DAY_MS)
    await api.services.jobs.stop()
    await pass()
    const { id: archive_id } = archives()[0]!
    const { id: job_id, status } = api.services.jobs.findBySubject(archive_id)!
    await change(id, OFF)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect([status, api.services.jobs.find(job_id)!.status]).toEqual(['queued', 'failed'])
    expect(api.events().filter(({ type }) => type === 'database.archive_failing')).toEqual([])
  })
  it('keeps its row while it is written, so that nothing of it is left at the destination', async () => {
    log.holds_copies = true
    const id = await create('orders', ON)
    const copies = () => api.kernel.db.sql('SELECT status FROM log_copies').pluck().all()
    await vi.waitFor(() => expect(copies()).toEqual(['copying']), 60_000)
    const { id: archive_id } = archives()[0]!
    await change(id, OFF)
    await archiving().tidy()
    expect([copies(), archives()]).toEqual([['copying'], [{ id: archive_id, status: 'closed' }]])
    expect(api.services.jobs.cancel(api.services.jobs.findBySubject(archive_id)!.id)).toBe(true)
    await api.services.jobs.idle()
    expect(copies()).toEqual(['failed'])
    await archiving().tidy()
    expect(archives()).toEqual([])
  })
})

describe('a clock that was ahead for a while', () => {
  const recover = async (id: string, at: string) => {
    const answer = await api
      .as('owner')
      .post(`/api/databases/${id}/restore`, { at, mode: 'new', name: `at-${log.commits}` })
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    await api.services.jobs.idle()
    const { status, failure } = api.services.jobs.find(answer.body.data.job_id)!
    return [status, failure === null ? null : (JSON.parse(failure) as { message: string }).message]
  }
  const commit = async (count = 1) => {
    for (let n = 0; n < count; n += 1) {
      log.commits += 1
      await pass()
    }
    await api.services.jobs.idle()
  }
  it('gets a copy at once when it is right, and no moment is gone back to by half', async () => {
    const id = await make('orders', ON)
    await commit()
    const before = api.fakes.clock.iso()
    await commit()
    const right = api.fakes.clock.iso()
    api.fakes.clock.set('2027-06-01T00:00:00.000Z')
    await commit(2)
    api.fakes.clock.set(right)
    // Of what is committed before that copy is whole nobody can tell whether it came before or after.
    log.holds_copies = true
    log.commits += 1
    await pass()
    api.fakes.clock.advance(120_000)
    await pass()
    const between = new Date(api.fakes.clock.now() - 60_000).toISOString()
    const copies = () => api.kernel.db.sql('SELECT status FROM log_copies ORDER BY rowid').pluck().all()
    // The second one was made while it was ahead.
    expect(copies()).toEqual(['ready', 'ready', 'copying'])
    api.services.jobs.cancel(api.services.jobs.findBySubject(archives()[0]!.id)!.id)
    log.holds_copies = false
    expect(await recover(id, between)).toEqual(['failed', expect.stringContaining('comes twice')])
    expect((await recover(id, before))[0]).toBe('succeeded')
    api.fakes.clock.advance(20 * 60_000)
    await commit(3)
    const after = new Date(api.fakes.clock.now() - 1500).toISOString()
    await commit(2)
    expect(await recover(id, after)).toEqual(['succeeded', null])
  })
})

describe('what somebody lays beside the pieces of a log', () => {
  const LARGE = '0000000100000000000000FF'
  it('is no piece where it is larger than those are, and is not taken', async () => {
    await make('orders', ON)
    log.waiting.set(LARGE, Buffer.alloc(16 * 1024 ** 2 + 1))
    await pass()
    const names = api.kernel.db.sql('SELECT name FROM log_pieces').pluck().all()
    expect([names.length > 0, names.includes(LARGE), log.waiting.size]).toEqual([true, false, 0])
  })
  it('is not taken when it grows after its size was told', async () => {
    const id = await make('orders', ON)
    log.waiting.set(LARGE, Buffer.alloc(16 * 1024 ** 2 + 1))
    log.told.set(LARGE, 100)
    await pass()
    const names = api.kernel.db.sql('SELECT name FROM log_pieces').pluck().all()
    expect([names.includes(LARGE), (await seen(id)).error]).toEqual([
      false,
      expect.stringContaining('larger than pieces are'),
    ])
  })
})

describe('an archive of data that was replaced since', () => {
  const replaced = () => api.kernel.db.sql(`UPDATE log_archives SET volume_id = 'vol_before'`).run()
  it('takes nothing of the log of the new data', async () => {
    await make('orders', ON)
    const { id: archive_id } = archives()[0]!
    const pieces = () => api.kernel.db.sql('SELECT count(*) FROM log_pieces').pluck().get()
    const before = [pieces(), log.pieces]
    replaced()
    log.commits += 1
    log.waiting.set('0000000100000000000000FF', Buffer.from('of the new data'))
    await archiving().pass(archive_id, new AbortController().signal)
    expect([[pieces(), log.pieces], log.waiting.size]).toEqual([before, 1])
  })
  it('gets no copy of the new data, which is no failure to be told', async () => {
    const id = await make('orders', ON)
    const copies = () => api.kernel.db.sql('SELECT count(*) FROM log_copies').pluck().get()
    const { id: archive_id } = archives()[0]!
    api.fakes.clock.advance(2 * DAY_MS)
    await api.services.jobs.stop()
    await pass()
    expect(api.services.jobs.findBySubject(archive_id)).toMatchObject({ status: 'queued' })
    const before = copies()
    replaced()
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(api.services.jobs.findBySubject(archive_id)).toMatchObject({ status: 'failed' })
    expect(copies()).toBe(before)
    expect(api.events().filter(({ type }) => type === 'database.archive_failing')).toEqual([])
    expect((await seen(id)).error).toBeNull()
  })
  it('is not waited for by a recovery: no moment after its end is in it', async () => {
    const id = await make('orders', ON)
    replaced()
    api.fakes.clock.advance(DAY_MS)
    const answer = await api
      .as('owner')
      .post(`/api/databases/${id}/restore`, { at: api.fakes.clock.iso(), mode: 'new', name: 'again' })
    expect([answer.status, answer.body.error?.details[0].path]).toEqual([422, 'at'])
  })
})
