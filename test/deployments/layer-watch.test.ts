import { afterEach, beforeEach, expect, it } from 'vitest'
import { EngineError, type Instance } from '#server/platform/engine/engine'
import { createLayerWatch } from '#server/platform/engine/layer-watch'
import { createTestApi, type TestApi } from '#test/support/api'
import { roundsDuring, toil } from '#test/support/rounds'
import { commitShop, SHOP_URL } from '#test/support/shop'

const MIB = 1024 ** 2

let api: TestApi
let id: string
const call = () => api.as('developer')
const app = async () => (await call().get(`/api/apps/${id}`)).body.data
const running = () => api.fakes.engine.instances({ owner: { kind: 'app', id } })
const asked = () => api.fakes.engine.calls.filter(({ method }) => method === 'layerBytes').length
const pass = () => api.services.deployments.layers.pass()

beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_LAYER_LIMIT_MIB: '100' } })
  commitShop(api, 'one')
  id = (await call().post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).body.data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

it('an app that writes more into its container than its share is stopped, with a sentence and an event', async () => {
  const [instance] = await running()
  api.fakes.engine.fillLayer(instance!.id, 100 * MIB)
  await pass()
  expect((await app()).status).toBe('running')
  api.fakes.engine.fillLayer(instance!.id, 100 * MIB + 1)
  api.fakes.clock.advance(301_000)
  await pass()
  expect(await app()).toMatchObject({
    status: 'failed',
    last_error: expect.stringContaining('wrote 101 MiB into its container, and 100 MiB is the most'),
  })
  expect(await running()).toEqual([])
  expect(api.events().findLast(({ type }) => type === 'app.failed')?.payload).toMatchObject({
    code: 'disk_exceeded',
  })
  // The reconciler does not bring it back; the user does.
  await api.services.deployments.reconciler.reconcile()
  expect(await running()).toEqual([])
  expect((await call().post(`/api/apps/${id}/start`)).status).toBeLessThan(300)
  await api.services.jobs.idle()
  expect((await app()).status).toBe('running')
})

it('an instance that ends after each piece that it writes is looked at while it waits to be started again', async () => {
  const [instance] = await running()
  api.fakes.engine.fillLayer(instance!.id, 100 * MIB + 1)
  api.fakes.engine.crash(instance!.id, 1)
  expect((await running())[0]?.state).not.toBe('running')
  await pass()
  expect(await app()).toMatchObject({
    status: 'failed',
    last_error: expect.stringContaining('wrote 101 MiB'),
  })
  expect(await running()).toEqual([])
})

it('an instance is asked for once in five minutes, and one that is gone is forgotten', async () => {
  await pass()
  await pass()
  expect(asked()).toBe(1)
  api.fakes.clock.advance(299_000)
  await pass()
  expect(asked()).toBe(1)
  api.fakes.clock.advance(2_000)
  await pass()
  expect(asked()).toBe(2)
})

it('an engine that does not answer ends no app', async () => {
  api.fakes.engine.setUnavailable(true)
  await pass()
  api.fakes.engine.setUnavailable(false)
  expect((await app()).status).toBe('running')
})

it('a database whose server writes beside its data is stopped as well, and comes back by a start', async () => {
  const made = await call().post('/api/databases', { name: 'orders', engine: 'postgres' })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const database_id = made.body.data.id
  await api.services.jobs.idle()
  const database = async () => (await call().get(`/api/databases/${database_id}`)).body.data
  const servers = () => api.fakes.engine.instances({ owner: { kind: 'database', id: database_id } })
  const [server] = await servers()
  api.fakes.engine.fillLayer(server!.id, 100 * MIB + 1)
  await api.services.databases.layers.pass()
  expect(await database()).toMatchObject({
    status: 'failed',
    last_error: expect.stringContaining('wrote 101 MiB beside its data, and 100 MiB is the most'),
  })
  expect(await servers()).toEqual([])
  expect((await call().post(`/api/databases/${database_id}/start`)).status).toBeLessThan(300)
  await api.services.jobs.idle()
  expect((await database()).status).toBe('running')
})

it('however many apps and instances there are, each instance is looked at once, and others are served meanwhile', async () => {
  let looks = 0
  const ids = Array.from({ length: 100 }, (_, n) => `rel_${n}`)
  const instances = ids.map((id) =>
    Object.defineProperty({ id: `ins_${id}`, owner: { kind: 'app', id }, state: 'running' }, 'release_id', {
      get() {
        looks += 1
        return id
      },
    }),
  ) as unknown as Instance[]
  const layers = createLayerWatch({
    ...api.kernel,
    engine: { instances: async () => instances, layerBytes: async () => 0 },
    limit_bytes: 1,
    desired: () => ids.map((id) => ({ id, release_id: id })),
    busy() {
      toil()
      return false
    },
    makers: ({ release_id }) => [release_id],
    sentence: () => '',
    stop: async () => {},
  })
  expect(await roundsDuring(layers.pass)).toBeGreaterThan(50)
  expect(looks).toBe(ids.length)
})

it('an instance of which the engine tells nothing keeps no other from being looked at', async () => {
  const instances = ['one', 'two'].map((name) => ({
    id: `ins_${name}`,
    owner: { kind: 'app', id: name },
    project_id: 'prj_1',
    release_id: `rel_${name}`,
    state: 'exited',
  }))
  const stopped: string[] = []
  const watch = createLayerWatch({
    ...api.kernel,
    engine: {
      instances: async () => instances as Instance[],
      async layerBytes(id) {
        if (id === 'ins_one') throw new EngineError('unavailable', 'The container engine does not answer.')
        return 2 * MIB
      },
    },
    limit_bytes: MIB,
    desired: () => ['one', 'two'].map((id) => ({ id, release_id: `rel_${id}` })),
    makers: ({ release_id }) => [release_id],
    busy: () => false,
    sentence: () => '',
    async stop({ id }) {
      stopped.push(id)
    },
  })
  await watch.pass()
  expect(stopped).toEqual(['two'])
})
