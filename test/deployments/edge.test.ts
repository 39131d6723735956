import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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

describe('before anything of an app has served', () => {
  const OTHER = 'https://git.example.com/team/new.git'
  const page = (id: string) =>
    [...api.fakes.ingress.routes.values()].find((route) => route.app_id === id)?.error_pages?.['503'] ?? ''

  it('its address says that it is being made, then that this failed, and nothing of the kind once it serves', async () => {
    const release = api.fakes.git.hold(OTHER)
    api.fakes.git.commit(OTHER, 'main', { 'notes.txt': 'nothing to run' })
    const { id } = (
      await api.as('developer').post('/api/apps', { name: 'new', git_url: OTHER, soak_seconds: 0 })
    ).body.data
    await expect.poll(() => page(id)).toContain('This app is being made')
    release()
    await api.services.jobs.idle()
    await expect.poll(() => page(id)).toContain('Its first deployment failed')
    api.fakes.git.commit(OTHER, 'main', { 'index.html': '<p>hello' })
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    await expect.poll(() => page(id)).toBe('')
  })
  it('a page of its own for that goes first', async () => {
    const release = api.fakes.git.hold(OTHER)
    api.fakes.git.commit(OTHER, 'main', { 'index.html': '<p>hello' })
    const { id } = (
      await api.as('developer').post('/api/apps', { name: 'new', git_url: OTHER, soak_seconds: 0 })
    ).body.data
    const [domain] = (await api.as('developer').get(`/api/domains?app_id=${id}`)).body.data
    const changed = await api
      .as('developer')
      .put(`/api/domains/${domain.id}`, { error_pages: { 503: '<p>ours' } })
    expect(changed.status).toBe(200)
    await expect.poll(() => page(id)).toBe('<p>ours')
    release()
    await api.services.jobs.idle()
  })
})
