import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNetworkRemoval } from '#server/projects/network-removal'
import { EngineError } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'
import { createTestApi, type TestApi } from '#test/support/api'
import { useHarness } from '../kernel/jobs/harness.ts'
import { poll } from '#test/support/poll'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let project_id: string
const admin = () => api.as('admin')
const networks = () => api.fakes.engine.networks()

beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'one')
  project_id = (await admin().post('/api/projects', { name: 'short-lived' })).body.data.id
  const app = await admin().post('/api/apps', {
    name: 'shop',
    project_id,
    git_url: SHOP_URL,
    soak_seconds: 0,
  })
  await api.services.jobs.idle()
  expect(networks()).toContain(networkOf({ project_id }))
  expect((await admin().delete(`/api/apps/${app.body.data.id}`, { name: 'shop' })).status).toBeLessThan(300)
  await api.services.jobs.idle()
})
afterEach(() => api.close())

describe('the network of a project', () => {
  it('goes with the project: an engine has room for a few hundred of them', async () => {
    expect(networks()).toContain(networkOf({ project_id }))
    expect((await admin().delete(`/api/projects/${project_id}`)).status).toBeLessThan(300)
    await api.services.jobs.idle()
    expect(networks()).not.toContain(networkOf({ project_id }))
  })
  it('goes once the engine answers again', async () => {
    const { engine, clock } = api.fakes
    const remove = engine.removeNetwork
    engine.removeNetwork = async () => {
      engine.removeNetwork = remove
      throw new EngineError('unavailable', 'The container engine does not answer.')
    }
    expect((await admin().delete(`/api/projects/${project_id}`)).status).toBeLessThan(300)
    await poll(() => {
      clock.advance(60_000)
      return !networks().includes(networkOf({ project_id }))
    })
  })
  it('stays where the project stays', async () => {
    await admin().post('/api/apps', { name: 'shop', project_id, git_url: SHOP_URL, soak_seconds: 0 })
    await api.services.jobs.idle()
    expect((await admin().delete(`/api/projects/${project_id}`)).status).toBe(409)
    await api.services.jobs.idle()
    expect(networks()).toContain(networkOf({ project_id }))
  })
})

const harness = useHarness()
it('the network of a deleted project goes once the engine answers again, however long it was away', async () => {
  const jobs = harness.boot([])
  let asked = 0
  const removed: string[] = []
  const removal = createNetworkRemoval(jobs, {
    async removeNetwork(name) {
      asked += 1
      // More often than a step is tried, and for longer than an outage is waited for.
      if (asked <= 100) throw new EngineError('unavailable', 'The container engine does not answer.')
      removed.push(name)
    },
  })
  jobs.start()
  removal.enqueue('prj_1')
  await jobs.idle()
  expect(removed).toEqual([networkOf({ project_id: 'prj_1' })])
})
