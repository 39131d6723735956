import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClusterError } from '#server/platform/cluster/cluster'
import { createTestApi, type TestApi } from '#test/support/api'
import { type AddedServer, joinServer, liveApp, lose, nodeEvents, nodesOf } from './harness.ts'

let api: TestApi
let server: AddedServer
const app = async (id: string) => (await api.as('developer').get(`/api/apps/${id}`)).body.data
const latest = async (id: string) => {
  const { latest_deployment } = await app(id)
  return (await api.as('developer').get(`/api/deployments/${latest_deployment.id}`)).body.data
}
const post = async (path: string) => {
  const answer = await api.as('admin').post(`/api/nodes/${server.id}${path}`)
  await api.services.jobs.idle()
  return answer
}
const remove = async (query = '') => {
  const answer = await api.as('admin').delete(`/api/nodes/${server.id}${query}`)
  await api.services.jobs.idle()
  return answer
}
const status = async () => (await api.as('admin').get(`/api/nodes/${server.id}`)).status

beforeEach(async () => {
  api = await createTestApi()
  server = await joinServer(api)
})
afterEach(() => api.close())

describe('draining a server', () => {
  it('moves its apps by deployments that say why, each with the old instance serving until the new one does', async () => {
    const id = await liveApp(api)
    const { data } = (await post('/drain')).body
    expect(data).toMatchObject({ availability: 'drain', state: 'ready' })
    expect(await latest(id)).toMatchObject({
      trigger: 'restart',
      status: 'live',
      created_by: null,
      reason: 'The work of the server at-10.9.8.7 moves elsewhere.',
    })
    expect(await nodesOf(api, id)).toEqual(['local'])
    const calls = api.fakes.engine.calls.map(({ method }) => method)
    expect(calls.lastIndexOf('ensureRelease')).toBeLessThan(calls.lastIndexOf('removeRelease'))
    expect(nodeEvents(api)).toEqual(['joining', 'ready', 'draining'])
  })
  it('spreads apps that move at once over the servers that are left', async () => {
    const ids = []
    for (const name of ['one', 'two', 'three']) ids.push(await liveApp(api, { name, node_id: server.id }))
    const others = [await joinServer(api, '10.9.8.8'), await joinServer(api, '10.9.8.9')]
    for (const id of ids) await api.as('developer').put(`/api/apps/${id}`, { node_id: null })
    await post('/drain')
    const places = await Promise.all(ids.map((id) => nodesOf(api, id)))
    expect(places.flat().sort()).toEqual(['local', ...others.map(({ id }) => id)].sort())
  })
  it('has nothing more placed there, until it takes work again', async () => {
    await post('/drain')
    const id = await liveApp(api)
    expect(await nodesOf(api, id)).toEqual(['local'])
    expect((await post('/activate')).body.data.availability).toBe('active')
    const other = await liveApp(api, { name: 'other' })
    expect([await nodesOf(api, id), await nodesOf(api, other)]).toEqual([['local'], [server.id]])
    const { data } = (await api.as('admin').get('/api/audit-logs?resource=node')).body
    expect(data.map(({ action }: any) => action)).toEqual(['node.activate', 'node.drain', 'node.create'])
  })
  it('is refused while apps are pinned to it, by their names', async () => {
    const id = await liveApp(api, { node_id: server.id })
    for (const answer of [
      await post('/drain'),
      await api.as('admin').put(`/api/nodes/${server.id}`, { availability: 'drain' }),
      await remove(),
    ])
      expect([answer.status, answer.body.error.message]).toEqual([
        409,
        expect.stringContaining('pinned to at-10.9.8.7: shop'),
      ])
    expect(await nodesOf(api, id)).toEqual([server.id])
  })
  it('leaves stopped apps where they are: a start goes elsewhere', async () => {
    const id = await liveApp(api)
    await api.as('developer').post(`/api/apps/${id}/stop`)
    await api.services.jobs.idle()
    await post('/drain')
    await api.as('developer').post(`/api/apps/${id}/start`)
    await api.services.jobs.idle()
    expect([(await app(id)).status, await nodesOf(api, id)]).toEqual(['running', ['local']])
  })
})

describe('a server that is lost', () => {
  it('has its apps started elsewhere, and says why', async () => {
    const id = await liveApp(api)
    await lose(api, server)
    expect(await latest(id)).toMatchObject({
      status: 'live',
      reason: 'The server at-10.9.8.7 does not answer.',
    })
    expect([(await app(id)).status, await nodesOf(api, id)]).toEqual(['running', ['local']])
  })
  it('has what is left on it removed once it is back', async () => {
    const id = await liveApp(api)
    await lose(api, server)
    api.fakes.cluster.setSilent(server.address, false)
    await api.services.nodes.watch()
    expect(await nodesOf(api, id)).toContain(server.id)
    await api.services.deployments.reconciler.reconcile()
    expect(await nodesOf(api, id)).toEqual(['local'])
  })
  it('keeps apps that are pinned to it: they say so, and run again once it is back', async () => {
    const id = await liveApp(api, { node_id: server.id })
    await lose(api, server)
    await api.services.nodes.watch()
    expect(await app(id)).toMatchObject({
      status: 'crashed',
      last_error:
        'The server at-10.9.8.7 does not answer. The app is pinned to it, and runs again once it is back.',
      latest_deployment: { number: 1 },
    })
    await api.services.deployments.reconciler.reconcile()
    const told = api.events().filter(({ type }) => type === 'app.crashed' || type === 'app.restored')
    expect(told).toHaveLength(1)
    api.fakes.cluster.setSilent(server.address, false)
    await api.services.nodes.watch()
    api.fakes.clock.set(new Date(Date.now() + 60_000).toISOString())
    await api.services.deployments.reconciler.reconcile()
    expect(await app(id)).toMatchObject({ status: 'running', last_error: null })
    expect(await nodesOf(api, id)).toEqual([server.id])
  })
  it('keeps nobody from deploying apps that are elsewhere', async () => {
    const { body } = await api.as('admin').get('/api/nodes')
    const own = body.data.find(({ role }: any) => role === 'manager')
    const id = await liveApp(api, { node_id: own.id })
    await lose(api, server)
    await api.as('developer').post(`/api/apps/${id}/deploy`, {})
    await api.services.jobs.idle()
    expect(await latest(id)).toMatchObject({ status: 'live', reason: null })
  })
  it('does not have an app that starts nowhere deployed again and again', async () => {
    const id = await liveApp(api)
    api.fakes.engine.behave(() => true, { start: 'exits' })
    await lose(api, server)
    expect(await latest(id)).toMatchObject({ status: 'failed', number: 2 })
    await api.services.nodes.watch()
    await api.services.jobs.idle()
    expect((await latest(id)).number).toBe(2)
    expect(await app(id)).toMatchObject({
      status: 'crashed',
      last_error: expect.stringMatching(
        /at-10\.9\.8\.7 does not answer.*could not be started on another one/,
      ),
    })
    api.fakes.engine.behave(() => true, {})
    api.fakes.clock.advance(300_000)
    await api.services.nodes.watch()
    await api.services.jobs.idle()
    expect(await latest(id)).toMatchObject({ number: 3, status: 'live' })
    expect(await app(id)).toMatchObject({ status: 'running', last_error: null })
  })
})

describe('removing a server', () => {
  it('moves its apps first, then has it leave and forgets it', async () => {
    const id = await liveApp(api)
    expect((await remove()).body.data).toEqual({ id: server.id, deleted: true })
    expect(await status()).toBe(404)
    expect(await nodesOf(api, id)).toEqual(['local'])
    expect(await latest(id)).toMatchObject({ reason: 'The server at-10.9.8.7 is being removed.' })
    expect([api.fakes.cluster.joined(), api.fakes.cluster.used()]).toEqual([[], []])
    expect(nodeEvents(api)).toEqual(['joining', 'ready', 'removing', 'removed'])
  })
  it('waits until its apps are elsewhere, and can be taken back meanwhile', async () => {
    const id = await liveApp(api)
    api.fakes.engine.behave(() => true, { start: 'never_listens' })
    await api.as('admin').delete(`/api/nodes/${server.id}`)
    expect((await api.as('admin').get(`/api/nodes/${server.id}`)).body.data.state).toBe('removing')
    const { data } = (await api.as('admin').post(`/api/nodes/${server.id}/activate`)).body
    expect(data.id).toBe(server.id)
    const { latest_deployment } = await app(id)
    await api.as('developer').post(`/api/deployments/${latest_deployment.id}/cancel`)
    await api.services.jobs.idle()
    expect((await api.as('admin').get(`/api/nodes/${server.id}`)).body.data.state).toBe('ready')
    expect(await nodesOf(api, id)).toEqual([server.id])
    expect(api.fakes.cluster.joined()).toEqual([server.id])
  })
  it('that does not answer is refused, and done with force: pinned apps start elsewhere, too', async () => {
    const id = await liveApp(api, { node_id: server.id })
    await lose(api, server)
    const refused = await remove()
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('does not answer. Remove it with force=true'),
    ])
    // Its SSH server may answer where its engine does not.
    api.fakes.cluster.failNext('leave', new ClusterError('failed', 'The container engine does not answer.'))
    await remove('?force=true')
    await api.services.nodes.watch()
    await api.services.jobs.idle()
    expect(await status()).toBe(404)
    expect(await app(id)).toMatchObject({ status: 'running', node_id: null, last_error: null })
    expect(await nodesOf(api, id)).toContain('local')
  })
})
