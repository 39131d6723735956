import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(async () => {
  await api.services.reconciler.stop()
  await api.close()
})

it('the end of a command beside an app is not told as the end of one of its instances', async () => {
  api.fakes.git.commit(URL, 'main', { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}', 'server.js': '//' })
  const { id } = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })).body.data
  await api.services.jobs.idle()
  await api.services.reconciler.start()
  await expect.poll(() => api.fakes.engine.calls.some(({ method }) => method === 'events')).toBe(true)
  expect((await api.as('developer').post(`/api/apps/${id}/exec`, { command: 'true' })).status).toBe(200)
  const [instance] = await api.fakes.engine.instances({ app_id: id })
  api.fakes.engine.crash(instance!.id, 3)
  const exits = () => api.events().filter(({ type }) => type === 'app.instance_exited').map(({ payload }) => payload)
  await expect.poll(() => exits().length).toBeGreaterThan(0)
  expect(exits()).toMatchObject([{ instance_id: instance!.id, exit_code: 3 }])
})

it('a deployment does not make the whole server be looked at: instances that a job starts are its own', async () => {
  const whole = () => api.fakes.engine.calls.filter(({ method, args }) => method === 'instances' && Object.keys(args[0] as object).length === 0).length
  api.fakes.git.commit(URL, 'main', { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}', 'server.js': '//' })
  await api.services.reconciler.start()
  await expect.poll(() => api.fakes.engine.calls.some(({ method }) => method === 'events')).toBe(true)
  const before = whole()
  const { id } = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })).body.data
  await api.services.jobs.idle()
  expect(await api.fakes.engine.instances({ app_id: id })).toHaveLength(1)
  expect(whole()).toBe(before)
})
