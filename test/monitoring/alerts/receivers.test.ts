import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
/** Receivers of the default project, of another one, and of all projects. */
let here: string
let elsewhere: string
let all: string
let rule_id: string
const admin = () => api.as('admin')
const receiver = async (project_id: string, more: object = {}): Promise<string> => {
  const config = { url: 'https://hooks.example.com/' }
  const body = { kind: 'notification', provider: 'generic', project_id, config, ...more }
  return (await admin().post('/api/webhooks', body)).body.data.id
}
const channels = async (caller: 'admin' | 'viewer' | 'developer' | 'outsider'): Promise<string[]> =>
  (await api.as(caller).get('/api/monitoring/alerts?per_page=100')).body.data.find(
    ({ id }: { id: string }) => id === rule_id,
  ).channels

beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  const { alerts } = api.services.monitoring
  alerts.start()
  here = await receiver(api.services.http.default_project())
  const other = (await admin().post('/api/projects', { name: 'Other' })).body.data.id
  elsewhere = await receiver(other)
  all = await receiver(other, { all_projects: true })
  const rules = (await admin().get('/api/monitoring/alerts?per_page=100')).body.data
  rule_id = rules.find(({ builtin }: { builtin: string }) => builtin === 'app_crashed').id
  const change = { channels: [here, elsewhere, all] }
  expect((await admin().put(`/api/monitoring/alerts/${rule_id}`, change)).status).toBe(200)
})
afterEach(async () => {
  api.services.monitoring.alerts.stop()
  await api.close()
})

describe('receivers that a rule of the installation names', () => {
  it('are shown to those who may see them, and all to administrators', async () => {
    expect(await channels('admin')).toEqual([here, elsewhere, all])
    expect(await channels('developer')).toEqual([here])
    expect(await channels('viewer')).toEqual([here])
    expect(await channels('outsider')).toEqual([])
  })
  it('are told in what a project hears of an alert only where they are its own or of all projects', async () => {
    const { events, http } = api.services
    const project_id = http.default_project()
    const since = events.latest()
    api.kernel.db.tx(() => events.append({ type: 'app.crashed', project_id, app_id: 'app_1', payload: {} }))
    await expect.poll(() => api.events(since).map(({ type }) => type)).toContain('alert.firing')
    const told = api.events(since).find(({ type }) => type === 'alert.firing')!
    expect(told).toMatchObject({ project_id, payload: { channels: [here, all] } })
  })
})
