import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServices } from '#server/modules'
import { createTestApi, type TestApi } from '#test/support/api'
import { type AddedServer, joinServer, liveApp, lose, nodeEvents, nodesOf } from './harness.ts'

let api: TestApi
let server: AddedServer
const get = async (path: string) => (await api.as('admin').get(path)).body.data

beforeEach(async () => {
  api = await createTestApi()
  server = await joinServer(api)
})
afterEach(() => api.close())

describe('an added server', () => {
  it('that does not answer for a moment stays ready', async () => {
    api.fakes.cluster.setSilent(server.address, true)
    await api.services.nodes.watch()
    api.fakes.clock.advance(29_000)
    await api.services.nodes.watch()
    expect((await get(`/api/nodes/${server.id}`)).state).toBe('ready')
    api.fakes.cluster.setSilent(server.address, false)
    await api.services.nodes.watch()
    api.fakes.clock.advance(29_000)
    api.fakes.cluster.setSilent(server.address, true)
    await api.services.nodes.watch()
    expect((await get(`/api/nodes/${server.id}`)).state).toBe('ready')
    expect(nodeEvents(api)).toEqual(['joining', 'ready'])
  })
  it('is unreachable after 30 s of silence and ready when it answers, each told once', async () => {
    await lose(api, server)
    await api.services.nodes.watch()
    expect(await get(`/api/nodes/${server.id}`)).toMatchObject({
      state: 'unreachable',
      capacity: { cpus: 4 },
      use: { instances: null },
      engine: { version: null },
    })
    expect(await get(`/api/nodes/${server.id}/health`)).toMatchObject({
      status: 'unreachable',
      checks: { reachability: { ok: false }, disk: { ok: null } },
    })
    expect((await get('/api/monitoring/health')).checks.nodes).toMatchObject({
      ok: false,
      message: 'These servers do not answer: at-10.9.8.7.',
    })
    api.fakes.cluster.setSilent(server.address, false)
    await api.services.nodes.watch()
    expect(nodeEvents(api)).toEqual(['joining', 'ready', 'unreachable', 'ready'])
  })
  it('that the cluster has lost keeps what it runs, gets nothing more, and says what to do', async () => {
    const app_id = await liveApp(api)
    expect(await nodesOf(api, app_id)).toEqual([server.id])
    const { reading } = api.fakes.cluster.addServer(server.address, {}, { memory_total_bytes: 2 ** 45 })
    reading.in_cluster = false
    await api.services.nodes.watch()
    await api.services.jobs.idle()
    expect(await get(`/api/nodes/${server.id}`)).toMatchObject({
      state: 'ready',
      last_error: expect.stringContaining('Remove it, then add it again.'),
    })
    expect(await get(`/api/nodes/${server.id}/health`)).toMatchObject({
      status: 'degraded',
      checks: { engine: { ok: false }, reachability: { ok: true } },
    })
    expect((await get('/api/monitoring/health')).checks.nodes).toMatchObject({
      ok: false,
      message: 'These servers are in the cluster no longer: at-10.9.8.7.',
    })
    expect(await nodesOf(api, app_id)).toEqual([server.id])
    await api.as('developer').post(`/api/apps/${app_id}/deploy`, {})
    await api.services.jobs.idle()
    expect(await nodesOf(api, app_id)).toEqual(['local'])
    reading.in_cluster = true
    await api.services.nodes.watch()
    expect((await get(`/api/nodes/${server.id}`)).last_error).toBeNull()
  })
  it('tells how its disk, its memory and its clock are', async () => {
    const { reading } = api.fakes.cluster.addServer(server.address, {}, { disk_used_bytes: 49 * 1024 ** 3 })
    reading.clock_offset_ms = -8000
    expect(await get(`/api/nodes/${server.id}/health`)).toMatchObject({
      status: 'degraded',
      checks: {
        engine: { ok: true },
        disk: { ok: false, message: 'The disk is 98 % full.' },
        clock: { ok: false, message: 'Its clock is 8000 ms behind that of this server.' },
        reachability: { ok: true, message: 'The server answers.' },
      },
    })
  })
  it('takes labels as any other, and no other role', async () => {
    const admin = api.as('admin')
    const changed = await admin.put(`/api/nodes/${server.id}`, { labels: { rack: '4' }, role: 'worker' })
    expect(changed.body.data).toMatchObject({ labels: { rack: '4' }, role: 'worker' })
    expect((await admin.put(`/api/nodes/${server.id}`, { role: 'manager' })).status).toBe(409)
  })
  it('is known to the cluster from the beginning of the next process', () => {
    const used: string[][] = []
    const cluster = {
      ...api.fakes.cluster,
      use: (members: readonly { id: string }[]) => void used.push(members.map(({ id }) => id)),
    }
    createServices(api.kernel, { ...api.fakes, cluster })
    expect(used).toEqual([[server.id]])
  })
  it('whose key cannot be read is left out, and the others are there', async () => {
    const other = await joinServer(api, '10.9.8.9')
    api.kernel.db.sql("UPDATE ssh_keys SET private_key = 'broken' WHERE name = 'key for 10.9.8.7'").run()
    await api.as('admin').delete(`/api/nodes/${(await joinServer(api, '10.9.8.10')).id}`)
    await api.services.jobs.idle()
    expect(api.fakes.cluster.used()).toEqual([other.id])
  })
  it('leaves the server of Portreeve what it is: it cannot be drained or removed', async () => {
    const own = (await get('/api/nodes')).find(({ role }: any) => role === 'manager')
    for (const answer of [
      await api.as('admin').post(`/api/nodes/${own.id}/drain`),
      await api.as('admin').delete(`/api/nodes/${own.id}`),
    ])
      expect([answer.status, answer.body.error.message]).toEqual([
        409,
        expect.stringMatching(/server of Portreeve itself/),
      ])
  })
})
