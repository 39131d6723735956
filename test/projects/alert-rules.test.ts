import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let project_id: string
const owner = () => api.as('outsider')
const rules = async (caller: 'admin' | 'outsider' = 'admin') =>
  ((await api.as(caller).get('/api/monitoring/alerts?per_page=100')).body.data as { name: string }[]).map(
    ({ name }) => name,
  )
const made = (id: string, name: string) =>
  owner().post('/api/monitoring/alerts', { project_id: id, name, metric: 'latency_p95_ms', threshold: 500 })

beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  project_id = (await owner().post('/api/projects', { name: 'short-lived' })).body.data.id
  expect((await made(project_id, 'Slow answers')).status).toBe(201)
})
afterEach(() => api.close())

describe('the alert rules of a project', () => {
  it('go with it: it is empty without anything that they could watch', async () => {
    const other = (await owner().post('/api/projects', { name: 'stays' })).body.data.id
    await made(other, 'Of another')
    const before = (await rules()).length
    const { status, body } = await owner().delete(`/api/projects/${project_id}`)
    expect([status, body]).toEqual([200, { data: { id: project_id, deleted: true } }])
    expect(await rules()).toHaveLength(before - 1)
    expect(await rules()).not.toContain('Slow answers')
    expect(await rules('outsider')).toContain('Of another')
    const told = api.events().filter(({ type }) => type === 'alert_rule.delete')
    expect(told).toMatchObject([{ project_id, actor_id: api.actor('outsider').user_id }])
  })
  it('stay where the project does', async () => {
    await owner().post('/api/apps', { name: 'shop', project_id, source: 'upload' })
    expect((await owner().delete(`/api/projects/${project_id}`)).status).toBe(409)
    expect(await rules('outsider')).toContain('Slow answers')
  })
})
