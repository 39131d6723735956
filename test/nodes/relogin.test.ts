import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { addKey, type AddedServer, joinServer, lose, nodeEvents } from './harness.ts'

const OTHER_KEY = `SHA256:${'k'.repeat(43)}`
let api: TestApi
let server: AddedServer
const get = async (path: string) => (await api.as('admin').get(path)).body.data
const change = (ssh: object) => api.as('admin').put(`/api/nodes/${server.id}`, { ssh })
const login = async () => (await get(`/api/nodes/${server.id}`)).ssh
/** The server as it was, with what is other than before. */
const alter = (facts: object) => {
  const pretended = api.fakes.cluster.addServer(server.address, { in_cluster: true, ...facts })
  return pretended
}

beforeEach(async () => {
  api = await createTestApi()
  server = await joinServer(api)
})
afterEach(() => api.close())

describe('the login of an added server', () => {
  it('is changed in part once it was tried, and is told in the audit log', async () => {
    const before = await login()
    const ssh_key_id = await addKey(api, 'next')
    alter({}).user = 'deploy'
    const refused = await change({ ssh_key_id })
    expect([refused.status, refused.body.error.details]).toEqual([
      409,
      [{ path: 'ssh.ssh_key_id', message: expect.stringContaining('does not let this user log in') }],
    ])
    expect(await login()).toEqual(before)
    const { status, body } = await change({ ssh_key_id, user: 'deploy', port: 2222 })
    expect([status, body.data.ssh]).toEqual([200, { ...before, ssh_key_id, user: 'deploy', port: 2222 }])
    expect(body.data.state).toBe('ready')
    const { data } = (await api.as('admin').get('/api/audit-logs?resource=node')).body
    expect(data[0]).toMatchObject({
      action: 'node.update',
      before: { ssh_user: 'root', ssh_port: 22 },
      after: { ssh_user: 'deploy', ssh_port: 2222, ssh_key_id },
    })
    expect(nodeEvents(api)).toEqual(['joining', 'ready', 'updated'])
  })
  it('says why it is refused, where the server has another key, and works again once that is approved', async () => {
    alter({ host_key: OTHER_KEY })
    await lose(api, server)
    api.fakes.cluster.setSilent(server.address, false)
    await api.services.nodes.watch()
    expect(await get(`/api/nodes/${server.id}/health`)).toMatchObject({
      status: 'unreachable',
      checks: { reachability: { ok: false, message: expect.stringContaining(`shows the key ${OTHER_KEY}`) } },
    })
    const shown = await change({})
    expect([shown.status, shown.body.error.details]).toEqual([
      409,
      [{ path: 'ssh.host_key', message: OTHER_KEY }],
    ])
    const { status, body } = await change({ host_key: OTHER_KEY })
    expect([status, body.data.state, body.data.ssh.host_key]).toEqual([200, 'ready', OTHER_KEY])
  })
  it('cannot become that of a machine which is no member, which cannot be root, or with a key that is not here', async () => {
    const before = await login()
    alter({ in_cluster: false })
    const stranger = await change({ port: 2222 })
    expect([stranger.status, stranger.body.error.message]).toEqual([
      409,
      expect.stringContaining('is no member of the cluster'),
    ])
    alter({ is_root: false })
    const weak = await change({ user: 'deploy' })
    expect([weak.status, weak.body.error.details[0].path]).toEqual([409, 'ssh.user'])
    const keyless = await change({ ssh_key_id: 'ssh_nosuch' })
    expect([keyless.status, keyless.body.error.details[0].path]).toEqual([422, 'ssh.ssh_key_id'])
    api.fakes.cluster.setSilent(server.address, true)
    const silent = await change({ port: 2222 })
    expect([silent.status, silent.body.error.details[0].path]).toEqual([409, 'ssh.port'])
    api.fakes.cluster.setSilent(server.address, false)
    expect(await login()).toEqual(before)
  })
  it('is nothing that the server of Portreeve has, nor one that is leaving', async () => {
    const own = (await get('/api/nodes')).find(({ role }: { role: string }) => role === 'manager')
    const { status, body } = await api.as('admin').put(`/api/nodes/${own.id}`, { ssh: { port: 2222 } })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('Nobody logs in to it.')])
    await api.services.jobs.stop()
    await api.as('admin').delete(`/api/nodes/${server.id}`)
    expect((await change({ port: 2222 })).status).toBe(409)
  })
})
