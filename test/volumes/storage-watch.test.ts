import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { storagePorts } from '#server/volumes/storage-ports'
import {
  createStorageWatch,
  type StopOutcome,
  type StorageWatch,
  type Stored,
} from '#server/volumes/storage-watch'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const MIB = 1024 ** 2

let api: TestApi
let project_id: string
const call = () => api.as('developer')
const pass = async () => {
  api.fakes.clock.advance(61_000)
  await api.services.volumes.storage.pass()
}
const app = async (id: string) => (await call().get(`/api/apps/${id}`)).body.data
const running = (id: string) => api.fakes.engine.instances({ owner: { kind: 'app', id } })
const limit = async (storage_bytes: number | null) =>
  expect(
    (await api.as('admin').put(`/api/projects/${project_id}`, { quotas: { storage_bytes } })).status,
  ).toBe(200)

/** A running app that writes to a volume of its own. */
async function appWithVolume(name: string, read_only = false): Promise<{ id: string; volume: string }> {
  const { id } = (await call().post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0 })).body.data
  await api.services.jobs.idle()
  const volume = (await call().post('/api/volumes', { name: `${name}-data` })).body.data.id as string
  const mount = { volume_id: volume, path: '/data', read_only }
  expect((await call().post(`/api/apps/${id}/mounts`, mount)).status).toBe(201)
  expect((await call().post(`/api/apps/${id}/deploy`)).status).toBe(201)
  await api.services.jobs.idle()
  expect((await app(id)).status).toBe('running')
  return { id, volume }
}

beforeEach(async () => {
  api = await createTestApi()
  project_id = (await api.as('owner').get('/api/projects')).body.data[0].id
  commitShop(api, 'one')
})
afterEach(() => api.close())

it('what fills the share of a project is stopped with a sentence and an event; what holds much and does not grow runs on', async () => {
  const full = await appWithVolume('full')
  const growing = await appWithVolume('growing')
  api.fakes.engine.fillVolume(full.volume, 80 * MIB)
  await limit(100 * MIB)
  await pass()
  expect((await app(full.id)).status).toBe('running')
  api.fakes.engine.fillVolume(growing.volume, 30 * MIB)
  await pass()
  expect(await app(full.id)).toMatchObject({ status: 'running', last_error: null })
  expect(await app(growing.id)).toMatchObject({
    status: 'failed',
    last_error:
      'The volumes and databases of the project hold 110 MiB, and 100 MiB is the most. The volume growing-data grew most, by 30 MiB, so what writes to it was stopped. Delete data, or ask an administrator to raise the quota storage_bytes; then start it.',
  })
  expect(await running(growing.id)).toEqual([])
  expect(api.events().findLast(({ type }) => type === 'app.failed')?.payload).toMatchObject({
    app_id: growing.id,
    code: 'storage_exceeded',
  })
  // Nothing brings it back but its people, who may make room with it.
  await api.services.deployments.reconciler.reconcile()
  expect(await running(growing.id)).toEqual([])
  expect((await call().post(`/api/apps/${growing.id}/start`)).status).toBeLessThan(300)
  await api.services.jobs.idle()
  api.fakes.engine.fillVolume(growing.volume, 25 * MIB)
  await pass()
  expect((await app(growing.id)).status).toBe('running')
})

it('a database that fills the share is stopped in the same way, and starts again when somebody asks', async () => {
  const { id } = (await call().post('/api/databases', { name: 'main', engine: 'redis' })).body.data
  await api.services.jobs.idle()
  const { volume_id } = api.kernel.db.sql('SELECT volume_id FROM databases WHERE id = ?').get(id) as {
    volume_id: string
  }
  await limit(10 * MIB)
  await pass()
  api.fakes.engine.fillVolume(volume_id, 11 * MIB)
  await pass()
  const database = async () => (await call().get(`/api/databases/${id}`)).body.data
  expect(await database()).toMatchObject({
    status: 'failed',
    last_error: expect.stringContaining('The database main grew most, by 11 MiB'),
  })
  expect(await api.fakes.engine.instances({ owner: { kind: 'database', id } })).toEqual([])
  expect(api.events().findLast(({ type }) => type === 'database.failed')?.payload).toMatchObject({
    database_id: id,
    error: expect.stringContaining('10 MiB is the most'),
  })
  expect((await call().post(`/api/databases/${id}/start`)).status).toBeLessThan(300)
  await api.services.jobs.idle()
  await pass()
  expect((await database()).status).toBe('running')
})

it('an app that only reads the volume is not stopped for what somebody else wrote to it', async () => {
  const reader = await appWithVolume('reader', true)
  await limit(MIB)
  await pass()
  api.fakes.engine.fillVolume(reader.volume, 5 * MIB)
  await pass()
  expect((await app(reader.id)).status).toBe('running')
})

it('without a limit nothing is measured, with one at most once a minute, and an engine that is away stops nothing', async () => {
  const asked = () => api.fakes.engine.calls.filter(({ method }) => method === 'volumeUsage').length
  const at_first = asked()
  await pass()
  expect(asked()).toBe(at_first)
  await limit(MIB)
  await pass()
  await api.services.volumes.storage.pass()
  expect(asked()).toBe(at_first + 1)
  api.fakes.engine.setUnavailable(true)
  await pass()
})

it('an app that fills the disk beside its volumes is stopped, and not one that holds much and does not grow', async () => {
  const [old, greedy] = [await appWithVolume('old'), await appWithVolume('greedy')]
  const database = (await call().post('/api/databases', { name: 'orders', engine: 'redis', version: '8' }))
    .body.data.id
  await api.services.jobs.idle()
  const fill = async (kind: 'app' | 'database', id: string, bytes: number) => {
    const [instance] = await api.fakes.engine.instances({ owner: { kind, id } })
    api.fakes.engine.fillLayer(instance!.id, bytes)
  }
  const { deployments, databases } = api.services
  let is_full = false
  const watch = createStorageWatch({
    ...api.kernel,
    clock: api.fakes.clock,
    ports: storagePorts(api.services.volumes, api.services, async () => is_full),
  })
  await fill('app', old.id, 900 * MIB)
  await deployments.layers.pass()
  await databases.layers.pass()
  await watch.pass()
  await fill('app', greedy.id, 500 * MIB)
  is_full = true
  await watch.look()
  expect(await app(greedy.id)).toMatchObject({
    status: 'failed',
    last_error:
      'The disk of the server is full: what is left is kept for Portreeve itself. What greedy wrote into its container grew most, by 500 MiB, so it was stopped, and that is gone with it. What is to be kept belongs on a volume; then start it.',
  })
  await fill('database', database, 300 * MIB)
  api.fakes.clock.advance(61_000)
  await watch.pass()
  expect((await call().get(`/api/databases/${database}`)).body.data.status).toBe('failed')
  expect((await app(old.id)).status).toBe('running')
})

it('an app that is busy is waited for: nobody else is stopped, and it is stopped once its job has ended', async () => {
  const busy = await appWithVolume('busy')
  const neighbour = await appWithVolume('neighbour')
  await limit(100 * MIB)
  await pass()
  api.fakes.engine.fillVolume(busy.volume, 300 * MIB)
  api.fakes.engine.fillVolume(neighbour.volume, 90 * MIB)
  const gate = Promise.withResolvers<void>()
  const unwanted = (error: unknown): never => {
    throw error
  }
  api.services.jobs.define({
    kind: 'test.wait',
    classify: unwanted,
    initial: () => ({}),
    steps: [{ name: 'wait', run: () => gate.promise }],
  })
  const work = { lane: `app:${busy.id}`, subject: busy.id, project_id, payload: {} }
  api.services.jobs.enqueue({ kind: 'test.wait', ...work })
  await pass()
  expect([(await app(busy.id)).status, (await app(neighbour.id)).status]).toEqual(['running', 'running'])
  gate.resolve()
  await api.services.jobs.idle()
  await pass()
  expect([(await app(busy.id)).status, (await app(neighbour.id)).status]).toEqual(['failed', 'running'])
})

describe('of what grows', () => {
  let all: Stored[]
  let growth: Record<string, number>
  let limited: { id: string; storage_bytes: number }[]
  let is_full: boolean
  let measure_ms: number
  let outcomes: Record<string, StopOutcome>
  let told: { name: string; code: string; error: string }[]
  let watch: StorageWatch
  const stopped = () => told.map(({ name }) => name)
  const stored = (name: string, used_bytes: number): Stored => ({
    kind: 'database',
    ...{ id: `db_${name}`, data_id: `vol_${name}`, name, project_id: 'prj_1', used_bytes, kept_bytes: 0 },
  })
  const passes = async (count: number) => {
    for (let done = 0; done < count; done += 1) {
      await watch.pass()
      api.fakes.clock.advance(61_000)
    }
  }
  beforeEach(() => {
    all = ['a', 'b', 'c', 'd'].map((name) => stored(name, 10 * MIB))
    growth = {}
    limited = []
    is_full = false
    measure_ms = 0
    outcomes = {}
    told = []
    watch = createStorageWatch({
      clock: api.fakes.clock,
      log: api.kernel.log,
      ports: {
        limited: () => limited,
        stored: () => all,
        async measure() {
          api.fakes.clock.advance(measure_ms)
          all = all.map((one) => ({ ...one, used_bytes: one.used_bytes + (growth[one.name] ?? 0) }))
        },
        isFull: async () => is_full,
        async stop({ name }, reason) {
          const outcome = outcomes[name] ?? 'stopped'
          if (outcome === 'stopped') {
            told.push({ name, ...reason })
            growth[name] = 0
            outcomes[name] = 'idle'
          }
          return outcome
        },
      },
    })
  })

  it('on a full disk what matters is stopped, whatever its quota, and no neighbour that grows by bytes', async () => {
    is_full = true
    growth = { a: 100 * MIB, b: 3, c: 2, d: 1 }
    await passes(5)
    expect(stopped()).toEqual(['a'])
    expect(told[0]).toMatchObject({
      code: 'disk_full',
      error: expect.stringContaining('a grew most, by 100 MiB'),
    })
  })
  it('a disk that fills up between two measurements is not left so until the next one', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 900 * MIB }]
    await watch.pass()
    api.fakes.clock.advance(11_000)
    growth = { b: 200 * MIB }
    await watch.look()
    expect(all.map(({ used_bytes }) => used_bytes)).toEqual(Array(4).fill(10 * MIB))
    is_full = true
    await watch.look()
    expect(told).toMatchObject([{ name: 'b', code: 'disk_full' }])
    // It stays full: from here on, the volumes are measured once a minute, as ever.
    growth = { c: 200 * MIB }
    api.fakes.clock.advance(11_000)
    await Promise.all([watch.look(), watch.pass()])
    expect(stopped()).toEqual(['b'])
    api.fakes.clock.advance(61_000)
    await watch.pass()
    expect(stopped()).toEqual(['b', 'c'])
  })
  it('a slow engine leaves none that fills the disk alone for longer than ten times as it measures', async () => {
    is_full = true
    growth = { a: 300 * MIB, b: 200 * MIB }
    measure_ms = 10_000
    await watch.pass()
    api.fakes.clock.advance(90_000)
    await watch.pass()
    expect(stopped()).toEqual(['a'])
    api.fakes.clock.advance(11_000)
    await watch.pass()
    expect(stopped()).toEqual(['a', 'b'])
  })
  it('what fills the disk little by little is found by the sum of it', async () => {
    is_full = true
    growth = { a: 20 * MIB, b: 3 }
    await passes(3)
    expect(stopped()).toEqual([])
    await passes(4)
    expect(stopped()).toEqual(['a'])
  })
  it('what crossed a quota is stopped, and in later passes no neighbour that grows by bytes', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 60 * MIB }]
    growth = { a: 15 * MIB, b: 4, c: 3, d: 2 }
    await passes(8)
    expect(stopped()).toEqual(['a'])
  })
  it('four bytes are called four bytes', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 40 * MIB }]
    growth = { a: 4, b: 3, c: 2, d: 1 }
    await passes(1)
    expect(stopped()).toEqual([])
    growth = {}
    all = ['a', 'b', 'c', 'd'].map((name) => stored(name, 10 * MIB))
    await passes(1)
    growth = { a: 4 }
    await passes(4)
    expect(told).toMatchObject([{ name: 'a', error: expect.stringContaining('grew most, by 4 bytes,') }])
  })
  it('a quota that is set or lowered below what is held stops nothing of what grows by bytes', async () => {
    growth = { a: 80 * MIB, b: 3, c: 2, d: 1 }
    limited = [{ id: 'prj_2', storage_bytes: MIB }]
    await passes(2)
    growth.a = 4
    limited = [{ id: 'prj_1', storage_bytes: 300 * MIB }]
    await passes(2)
    limited = [{ id: 'prj_1', storage_bytes: 20 * MIB }]
    await passes(5)
    expect(stopped()).toEqual([])
    growth.b = 70 * MIB
    await passes(1)
    expect(stopped()).toEqual(['b'])
  })
  it('one that a job is about is waited for, with its growth of before', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 60 * MIB }]
    await passes(1)
    growth = { a: 90 * MIB, b: 70 * MIB }
    outcomes = { a: 'busy' }
    await passes(1)
    growth = {}
    await passes(2)
    expect(stopped()).toEqual([])
    outcomes = {}
    await passes(1)
    expect(stopped()).toEqual(['a'])
    expect(told[0]!.error).toContain('a grew most, by 90 MiB')
  })
  it('where nothing runs on the first, the next one is stopped that matters as well', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 60 * MIB }]
    await passes(1)
    growth = { a: 90 * MIB, b: 70 * MIB, c: 1 }
    outcomes = { a: 'idle' }
    await passes(1)
    expect(stopped()).toEqual(['b'])
  })
  it('what is kept from before restores counts as held, and as growth of nobody', async () => {
    limited = [{ id: 'prj_1', storage_bytes: 60 * MIB }]
    growth = { b: 1 }
    await passes(1)
    all = all.map((one) => (one.name === 'a' ? { ...one, kept_bytes: 500 * MIB } : one))
    await passes(3)
    expect(stopped()).toEqual([])
    growth = { c: 64 * MIB }
    await passes(1)
    expect(told).toMatchObject([{ name: 'c', error: expect.stringContaining('hold 605 MiB') }])
  })
})
