import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('what logs may not show of the variables of an app is found by opening each of them once', async () => {
  const developer = api.as('developer')
  const app = (await developer.post('/api/apps', { name: 'shop', image: 'nginx:1.29' })).body.data
  await api.services.jobs.idle()
  for (const n of [1, 2, 3])
    await developer.post(`/api/apps/${app.id}/env`, { key: `KEY_${n}`, value: `live-${n}`, secret: true })
  const previews = { key: 'BOTH', value: 'live-both', preview_value: 'preview-both', secret: true }
  expect((await developer.post(`/api/apps/${app.id}/env`, previews)).status).toBe(201)
  const lost = { key: 'LOST', value: 'a-${{ project.NOWHERE }}', secret: true }
  await developer.post(`/api/apps/${app.id}/env`, lost)
  const { secrets } = api.kernel
  const { open } = secrets
  let opened = 0
  secrets.open = (...given) => {
    opened += 1
    return open(...given)
  }
  const values = api.services.env.secretValues({ id: app.id, project_id: app.project_id })
  for (const value of ['live-1', 'live-2', 'live-3', 'live-both', 'preview-both'])
    expect(values).toContain(value)
  const rows = api.kernel.db.sql('SELECT value, preview_value FROM variables').all() as object[]
  const sealed = rows.flatMap((row) => Object.values(row)).filter((value) => value !== null)
  expect(opened).toBe(sealed.length)
})

it('what logs may not show of an app is the same read at once or with others served between its parts', async () => {
  const developer = api.as('developer')
  const app = (await developer.post('/api/apps', { name: 'shop', image: 'nginx:1.29' })).body.data
  await developer.post(`/api/apps/${app.id}/env`, { key: 'KEY', value: 'first-secret', secret: true })
  await developer.post(`/api/apps/${app.id}/mounts`, { path: '/etc/key', content: 'text of a file' })
  await developer.post(`/api/apps/${app.id}/deploy`, {})
  await api.services.jobs.idle()
  await developer.put(`/api/apps/${app.id}/env/KEY`, { value: 'second-secret' })
  const { runtime } = api.services.deployments
  let turns = 0
  let is_done = false
  const count = () => {
    turns += 1
    if (!is_done) setImmediate(count)
  }
  setImmediate(count)
  const soon = await runtime.secretsSoon(app.id)
  is_done = true
  expect(soon).toEqual(runtime.secretsOf(app.id))
  for (const value of ['first-secret', 'second-secret', 'text of a file']) expect(soon).toContain(value)
  // Variables, files and the release are a part each.
  expect(turns).toBeGreaterThanOrEqual(3)
})
