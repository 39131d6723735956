import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('an engine that cannot be asked at the start does not take the apps off the edge: they serve on, and the start tries again', async () => {
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"scripts":{"start":"node server.js"}}',
    'server.js': '',
  })
  const { id } = (
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })
  ).body.data
  await api.services.jobs.idle()
  const route = () => [...api.fakes.ingress.routes.values()].find(({ app_id }) => app_id === id)
  const serving = structuredClone(route())
  expect(serving?.servers).toHaveLength(1)
  api.fakes.engine.setUnavailable(true)
  await expect(api.services.deployments.reconciler.applyEdge()).rejects.toThrow('does not answer')
  expect(route()).toEqual(serving)
  api.fakes.engine.setUnavailable(false)
  await api.services.deployments.reconciler.applyEdge()
  expect(route()).toEqual(serving)
})
