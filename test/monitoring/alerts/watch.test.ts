import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const tick = async (times: number) => {
  for (let n = 0; n < times; n++) {
    await api.services.monitoring.tick()
    api.fakes.clock.advance(60_000)
  }
}

it('what a rule of a whole project found of an app ends in that project once the app has moved, and the other never sees it', async () => {
  commitShop(api, 'first')
  const admin = api.as('admin')
  const home = api.services.http.default_project()
  const app = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  const app_id = (await api.as('developer').post('/api/apps', app)).body.data.id
  await api.services.jobs.idle()
  const body = { name: 'Of the old project', metric: 'memory_bytes', threshold: 0, for_s: 0 }
  const rule_id = (await api.as('developer').post('/api/monitoring/alerts', body)).body.data.id
  const other = (await admin.post('/api/projects', { name: 'Elsewhere' })).body.data.id
  await tick(2)
  const rule = async () =>
    (await admin.get('/api/monitoring/alerts?per_page=100')).body.data.find(
      ({ id }: { id: string }) => id === rule_id,
    )
  expect((await rule()).state).toBe('firing')

  const since = api.services.events.latest()
  await admin.post(`/api/apps/${app_id}/move`, { project_id: other })
  await api.services.jobs.idle()
  await tick(5)
  expect((await rule()).state).not.toBe('firing')
  expect(api.events(since).filter(({ type }) => type.startsWith('alert.'))).toMatchObject([
    { type: 'alert.resolved', project_id: home },
  ])
  expect((await admin.get('/api/monitoring/alerts/history')).body.data).toMatchObject([
    { rule_id, project_id: home, resolved_at: expect.any(String) },
  ])
})
