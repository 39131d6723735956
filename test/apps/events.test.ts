import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'v1')
  const body = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  app_id = (await api.as('developer').post('/api/apps', body)).body.data.id
  await api.services.jobs.idle()
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

const timeline = async (query = '') =>
  (await api.as('viewer').get(`/api/apps/${app_id}/events?per_page=100${query}`)).body

describe('the timeline of an app', () => {
  it('tells its creation and its deployment, newest first, each with its cursor, time and deployment', async () => {
    const { data, total } = await timeline()
    expect(total).toBe(data.length)
    const types = data.map(({ type }: { type: string }) => type)
    expect(types.at(-1)).toBe('app.created')
    for (const type of ['deployment.queued', 'deployment.building', 'app.running', 'deployment.finished'])
      expect(types).toContain(type)
    expect(types.indexOf('deployment.finished')).toBeLessThan(types.indexOf('deployment.queued'))
    const cursors = data.map(({ id }: { id: number }) => id)
    expect(cursors).toEqual([...cursors].sort((a, b) => b - a))
    const queued = data.find(({ type }: { type: string }) => type === 'deployment.queued')
    expect(queued).toMatchObject({
      actor_id: api.actor('developer').user_id,
      deployment_id: expect.stringMatching(/^dep_/),
      payload: { app_id, number: 1 },
      created_at: expect.any(String),
    })
  })
  it('tells who changed what, and says nothing of other apps', async () => {
    await api.as('owner').put(`/api/apps/${app_id}`, { port: 8080 })
    await api.as('developer').post('/api/apps', { name: 'other', image: 'nginx:1.29' })
    const { data } = await timeline()
    expect(data[0]).toMatchObject({
      type: 'app.updated',
      actor_id: api.actor('owner').user_id,
      payload: { changed: ['port'] },
    })
    expect(data.every(({ payload }: { payload: { app_id: string } }) => payload.app_id === app_id)).toBe(true)
  })
  it.each([
    { name: 'store' },
    { auto_deploy: false },
    { watch_paths: ['src/**'] },
    { soak_seconds: 30 },
    { port: 8080, auto_deploy: false },
  ])('names what holds at once as it names what waits for a deployment: %j', async (body) => {
    expect((await api.as('owner').put(`/api/apps/${app_id}`, body)).status).toBe(200)
    expect((await timeline()).data[0]).toMatchObject({
      type: 'app.updated',
      payload: { changed: Object.keys(body).sort() },
    })
  })
  it('names the token that the repository is read with', async () => {
    const token = { name: 'first', host: 'git.example.com', token: 'a token of the forge' }
    const made = await api.as('owner').post('/api/git-credentials', token)
    expect(made.status, made.text).toBe(201)
    const changed = await api.as('owner').put(`/api/apps/${app_id}`, { git_credential_id: made.body.data.id })
    expect(changed.status, changed.text).toBe(200)
    expect((await timeline()).data[0].payload.changed).toEqual(['git_credential_id'])
  })
  it('is read in pages and from its beginning', async () => {
    const all = (await timeline()).data.map(({ id }: { id: number }) => id)
    const second = await api.as('viewer').get(`/api/apps/${app_id}/events?per_page=2&page=2`)
    expect(second.body.data.map(({ id }: { id: number }) => id)).toEqual(all.slice(2, 4))
    const oldest = await timeline('&sort=created_at')
    expect(oldest.data.map(({ id }: { id: number }) => id)).toEqual(all.toReversed())
  })
  it('is not there for strangers, nor for an app that is not there', async () => {
    expect((await api.as('outsider').get(`/api/apps/${app_id}/events`)).status).toBe(404)
    expect((await api.as('viewer').get('/api/apps/app_0123456789abcdefghjk/events')).status).toBe(404)
  })
})
