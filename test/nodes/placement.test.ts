import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop } from '#test/support/shop'
import { type AddedServer, joinServer, liveApp, nodesOf } from './harness.ts'

let api: TestApi
let server: AddedServer
const app = async (id: string) => (await api.as('developer').get(`/api/apps/${id}`)).body.data
const put = (id: string, body: object) => api.as('developer').put(`/api/apps/${id}`, body)
async function deploy(id: string): Promise<any> {
  const { body } = await api.as('developer').post(`/api/apps/${id}/deploy`, {})
  await api.services.jobs.idle()
  return (await api.as('developer').get(`/api/deployments/${body.data.id}`)).body.data
}
const ownId = async () => {
  const { data } = (await api.as('admin').get('/api/nodes')).body
  return data.find(({ role }: any) => role === 'manager').id as string
}

beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

describe('without a second server', () => {
  it('an app runs here, and nothing says where it might', async () => {
    const id = await liveApp(api)
    expect(await nodesOf(api, id)).toEqual(['local'])
    const [ensured] = api.fakes.engine.calls.filter(({ method }) => method === 'ensureRelease')
    expect(ensured!.args[0]).toMatchObject({ placement: { node: 'local' } })
    expect((await app(id)).node_id).toBeNull()
  })
})

describe('with a second server', () => {
  beforeEach(async () => {
    server = await joinServer(api)
  })
  it('a new app goes where the most memory is promised to nobody', async () => {
    const id = await liveApp(api, { processes: { worker: { command: 'node worker.js' } } })
    expect(await nodesOf(api, id)).toEqual([server.id, server.id])
    const { data } = (await api.as('developer').get(`/api/nodes/${server.id}/instances`)).body
    expect(data).toMatchObject([{ owner_id: id }, { owner_id: id }])
    expect((await api.as('outsider').get(`/api/nodes/${server.id}/instances`)).body.total).toBe(0)
    expect((await api.as('developer').get(`/api/nodes/${await ownId()}/instances`)).body.total).toBe(0)
    expect((await api.as('viewer').get(`/api/nodes/${server.id}`)).body.data.use.instances).toBe(2)
    expect((await app(id)).needs_redeploy).toBe(false)
  })
  it('an app that is pinned to a server runs there and nowhere else', async () => {
    const own = await ownId()
    const id = await liveApp(api, { node_id: own })
    expect(await nodesOf(api, id)).toEqual(['local'])
    const changed = await put(id, { node_id: server.id })
    expect(changed.body.data).toMatchObject({
      node_id: server.id,
      needs_redeploy: true,
      changed_keys: ['node_id'],
    })
    const { data } = (await api.as('developer').get(`/api/apps/${id}/changes`)).body
    expect(data).toMatchObject([{ key: 'node_id', after: 'at-10.9.8.7' }])
    expect((await deploy(id)).status).toBe('live')
    expect(await nodesOf(api, id)).toEqual([server.id])
    expect(await app(id)).toMatchObject({ needs_redeploy: false, changed_keys: [] })
  })
  it('a pin that was not deployed yet can be taken back', async () => {
    const id = await liveApp(api, { node_id: await ownId() })
    await put(id, { node_id: server.id })
    await api.as('developer').delete(`/api/apps/${id}/changes/node_id`)
    expect(await app(id)).toMatchObject({ node_id: null, needs_redeploy: false })
  })
  it('a server that is not there is no place for an app', async () => {
    const id = await liveApp(api)
    const refused = await put(id, { node_id: 'node_unknown' })
    expect([refused.status, refused.body.error.message]).toEqual([
      422,
      'node_id: is no server of this installation.',
    ])
  })
  it('a server that takes no work is no place for an app that was not there', async () => {
    await api.as('admin').post(`/api/nodes/${server.id}/drain`)
    const refused = await put(await liveApp(api), { node_id: server.id })
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('at-10.9.8.7 takes no work'),
    ])
  })
  it('an app with a volume stays here, and cannot be pinned elsewhere', async () => {
    const id = await liveApp(api)
    const volume = (await api.as('developer').post('/api/volumes', { name: 'data' })).body.data
    await api.services.jobs.idle()
    await api.as('developer').post(`/api/apps/${id}/mounts`, { volume_id: volume.id, path: '/data' })
    const refused = await put(id, { node_id: server.id })
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringMatching(/cannot run on at-10\.9\.8\.7: it mounts a volume/),
    ])
    expect((await deploy(id)).status).toBe('live')
    expect(await nodesOf(api, id)).toEqual(['local'])
  })
  it('an app that is pinned elsewhere gets no volume', async () => {
    const id = await liveApp(api, { node_id: server.id })
    const volume = (await api.as('developer').post('/api/volumes', { name: 'data' })).body.data
    await api.services.jobs.idle()
    const mount = await api
      .as('developer')
      .post(`/api/apps/${id}/mounts`, { volume_id: volume.id, path: '/data' })
    expect([mount.status, mount.body.error.message]).toEqual([
      409,
      expect.stringContaining('is pinned to at-10.9.8.7, and volumes are on the server of Portreeve'),
    ])
  })
  it('the services of a compose file stay here, and cannot be pinned elsewhere', async () => {
    const compose = 'services: { web: { image: "nginx:1.29", ports: ["80"] } }'
    api.fakes.engine.addImage('nginx:1.29', { exposed_ports: [80] })
    const given = { name: 'stack', compose, soak_seconds: 0 }
    const refused = await api.as('developer').post('/api/apps', { ...given, node_id: server.id })
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('services of a compose file'),
    ])
    const { id } = (await api.as('developer').post('/api/apps', given)).body.data
    await api.services.jobs.idle()
    expect(await nodesOf(api, id)).toEqual(['local'])
  })
  it('commands beside an app run where it does', async () => {
    const id = await liveApp(api)
    await api.as('developer').post(`/api/apps/${id}/exec`, { command: 'true' })
    const run = api.fakes.engine.calls.find(({ method }) => method === 'runOnce')
    expect(run!.args[0]).toMatchObject({ placement: { node: server.id } })
  })
  it('more instances of an app start where the others are', async () => {
    const id = await liveApp(api)
    await api.as('developer').put(`/api/apps/${id}/scaling`, { replicas: 3 })
    await api.services.deployments.context.scaler.settle(id)
    expect(await nodesOf(api, id)).toEqual([server.id, server.id, server.id])
  })
  it('a rollback goes to a server that is there, whatever it was on', async () => {
    const id = await liveApp(api)
    const first = (await app(id)).live_deployment_id
    await put(id, { node_id: await ownId() })
    commitShop(api, 'two')
    await deploy(id)
    expect(await nodesOf(api, id)).toEqual(['local'])
    await put(id, { node_id: null })
    await api.as('admin').delete(`/api/nodes/${server.id}`)
    await api.services.jobs.idle()
    await api.as('developer').post(`/api/apps/${id}/rollback`, { deployment_id: first })
    await api.services.jobs.idle()
    expect([await nodesOf(api, id), (await app(id)).latest_deployment.status]).toEqual([['local'], 'live'])
  })
  it('a command of an app on a server that does not answer says that it is that server, which nobody can start', async () => {
    const id = await liveApp(api, { node_id: server.id })
    api.fakes.cluster.setSilent(server.address, true)
    const { status, body } = await api.as('developer').post(`/api/apps/${id}/exec`, { command: 'true' })
    expect([status, body.error.code, body.error.message]).toEqual([
      503,
      'ENGINE_UNAVAILABLE',
      'The server that this runs on does not answer. Try again once it does.',
    ])
  })
  it('a deployment of an app that is pinned to a server that does not answer fails and says so', async () => {
    const id = await liveApp(api, { node_id: server.id })
    api.fakes.cluster.setSilent(server.address, true)
    await api.services.nodes.watch()
    api.fakes.clock.advance(30_000)
    await api.services.nodes.watch()
    const { status, error } = await deploy(id)
    expect([status, error.code, error.message]).toEqual([
      'failed',
      'node_unreachable',
      'The server at-10.9.8.7, which the app is pinned to, does not answer.',
    ])
  })
})
