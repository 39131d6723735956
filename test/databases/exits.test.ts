import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'
import { pretendServer } from './server.ts'

let api: TestApi
let id: string
beforeEach(async () => {
  api = await createTestApi()
  pretendServer(api)
  id = (await api.as('developer').post('/api/databases', { name: 'orders', engine: 'postgres' })).body.data.id
  await api.services.jobs.idle()
  await api.services.deployments.reconciler.start()
  await api.services.deployments.reconciler.reconcile()
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})
const database = async () => (await api.as('developer').get(`/api/databases/${id}`)).body.data
const serving = async () => {
  const instances = await api.fakes.engine.instances({ owner: { kind: 'database', id } })
  return instances.find(({ release_id }) => release_id !== 'vol_trial')!
}

describe('the end of a server', () => {
  it('is told on its database', async () => {
    api.fakes.engine.crash((await serving()).id, 7)
    await poll(async () => (await database()).last_error !== null)
    expect((await database()).last_error).toContain('exit code 7')
  })
  it('that only tried a restore is no fault of the database', async () => {
    const { image, project_id } = await serving()
    const trial = testWorkload({
      owner: { kind: 'database', id },
      project_id,
      release_id: 'vol_trial',
      image,
      network: 'ptr-trial',
    })
    await api.fakes.engine.ensureNetwork('ptr-trial', {})
    const [spare] = await api.fakes.engine.ensureRelease(trial, new AbortController().signal)
    const since = api.services.events.latest()
    api.fakes.engine.crash(spare!.id, 137)
    // The next end of the serving one is heard after it, so that there is nothing to wait for.
    api.fakes.engine.crash((await serving()).id, 7)
    await poll(() => api.events(since).some(({ type }) => type === 'database.exited'))
    const codes = api
      .events(since)
      .filter(({ type }) => type === 'database.exited')
      .map(({ payload }) => payload.exit_code)
    expect(codes).toEqual([7])
  })
})
