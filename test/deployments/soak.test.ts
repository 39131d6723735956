import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let first: string
let second: string
/** A release that proved itself, and a second one that has the traffic and is watched for minutes. */
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'v1')
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
  await api.as('developer').put(`/api/apps/${app_id}`, { soak_seconds: 300 })
  first = (await history())[0].id
  commitShop(api, 'v2')
  second = (await post('deploy')).id
  await expect.poll(() => stepOf(second)).toBe('soak')
})
afterEach(() => api.close())

const post = async (what: string, body?: unknown) =>
  (await api.as('developer').post(`/api/apps/${app_id}/${what}`, body)).body.data
const history = async () =>
  (await api.as('viewer').get(`/api/apps/${app_id}/deployments?per_page=100`)).body.data
const deployment = async (id: string) => (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
const stepOf = async (id: string) =>
  (await deployment(id)).steps.find(({ status }: { status: string }) => status === 'running')?.name
const statuses = async () =>
  Object.fromEntries((await history()).map(({ id, status }: { id: string; status: string }) => [id, status]))
const servers = () =>
  [...api.fakes.ingress.routes.values()]
    .filter((route) => route.app_id === app_id)
    .flatMap((route) => route.servers.map(({ address }) => address))
/** Nothing here moves the clock, so a soak of minutes that ends was ended. */
const isLive = (id: string) => expect.poll(async () => (await statuses())[id]).toBe('live')

describe('what follows a release that is still watched does not wait for that', () => {
  it('a rollback: the traffic goes back at once, and what was rolled back cannot be rolled back to', async () => {
    const { id } = await post('rollback')
    await isLive(id)
    expect(await statuses()).toEqual({ [first]: 'replaced', [second]: 'replaced', [id]: 'live' })
    expect((await deployment(id)).rolled_back_to).toBe(first)
    const again = await api.as('developer').post(`/api/apps/${app_id}/rollback`, { deployment_id: second })
    expect(again.status).toBe(409)
  })
  it('a rollback that fails leaves the release before serving, and not the one that was rolled back', async () => {
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    const before = (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })).map(
      ({ address }) => address,
    )
    const { id } = await post('rollback')
    await api.services.jobs.idle()
    expect(await statuses()).toEqual({ [first]: 'live', [second]: 'replaced', [id]: 'failed' })
    expect(before).toContain(servers()[0])
  })
  it('a deployment', async () => {
    commitShop(api, 'v3')
    const { id } = await post('deploy')
    await isLive(id)
    expect(await statuses()).toEqual({ [first]: 'replaced', [second]: 'replaced', [id]: 'live' })
  })
  it('a restart', async () => {
    const { id } = await post('restart')
    await isLive(id)
  })
  it('a cancel', async () => {
    await api.as('developer').post(`/api/deployments/${second}/cancel`)
    await api.services.jobs.idle()
    expect(await statuses()).toEqual({ [first]: 'live', [second]: 'cancelled' })
  })
  it('one that was queued before the soak began', async () => {
    const release = api.fakes.git.hold(SHOP_URL)
    commitShop(api, 'v3')
    const third = (await post('deploy')).id
    await expect.poll(() => stepOf(third)).toBe('clone')
    const { id } = await post('restart')
    release()
    await isLive(id)
  })
})

describe('of the deployments of an app', () => {
  it('exactly one is live, whatever becomes of the next', async () => {
    expect(await statuses()).toEqual({ [first]: 'replaced', [second]: 'live' })
    const instances = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    const { live_release_id } = api.services.apps.find(app_id)!
    api.fakes.engine.crash(instances.find(({ release_id }) => release_id === live_release_id)!.id)
    await api.services.jobs.idle()
    expect(await statuses()).toEqual({ [first]: 'live', [second]: 'failed' })
    const told = api.events().filter(({ deployment_id }) => deployment_id === first)
    expect(told.map(({ type }) => type).slice(-2)).toEqual(['deployment.replaced', 'deployment.restored'])
    const live = await api.as('viewer').get('/api/deployments?status=live')
    expect(live.body.data.map(({ id }: { id: string }) => id)).toEqual([first])
  })
  it('the live one stays it while the app is stopped', async () => {
    await post('stop')
    await api.services.jobs.idle()
    expect(await statuses()).toEqual({ [first]: 'replaced', [second]: 'live' })
  })
})

describe('of what is taken back while the engine does not answer', () => {
  it('the release before is live again at once, and nothing of the other is left once the engine answers', async () => {
    api.fakes.engine.setUnavailable(true)
    await api.as('developer').post(`/api/deployments/${second}/cancel`)
    const live = () => api.services.apps.find(app_id)!.live_deployment_id
    await expect.poll(live).toBe(first)
    api.fakes.engine.setUnavailable(false)
    await api.services.jobs.idle()
    expect(await statuses()).toEqual({ [first]: 'live', [second]: 'cancelled' })
    const instances = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    expect(servers()).toEqual([instances[0]!.address])
    expect(instances).toHaveLength(1)
  })
})
