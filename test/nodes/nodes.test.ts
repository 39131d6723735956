import { hostname } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let id: string
const get = async (path: string, as: 'admin' | 'outsider' | 'developer' = 'admin') =>
  (await api.as(as).get(path)).body

beforeEach(async () => {
  api = await createTestApi()
  id = (await get('/api/nodes')).data[0].id
})
afterEach(() => api.close())

describe('the server of Portreeve', () => {
  it('is the one node, with what it has and what of it is in use', async () => {
    const { data, total } = await get('/api/nodes')
    expect([total, data[0]]).toMatchObject([
      1,
      { name: hostname(), role: 'manager', state: 'ready', availability: 'active', labels: {} },
    ])
    expect(data[0].id).toMatch(/^node_/)
    expect(data[0].capacity.memory_bytes).toBeGreaterThan(data[0].use.memory_bytes)
    expect(data[0].capacity.disk_bytes).toBeGreaterThan(0)
    expect(await get('/api/nodes?state=unreachable')).toMatchObject({ data: [], total: 0 })
  })
  it('is told as unreachable while its engine does not answer, once, and as ready after that', async () => {
    api.fakes.engine.setUnavailable(true)
    await api.services.nodes.watch()
    await api.services.nodes.watch()
    expect((await get(`/api/nodes/${id}`)).data).toMatchObject({
      state: 'unreachable',
      use: { instances: null, committed_cpus: null },
    })
    expect((await get(`/api/nodes/${id}/health`)).data).toMatchObject({
      status: 'unreachable',
      checks: { engine: { ok: false, message: 'The container engine does not answer.' } },
    })
    expect((await api.as('admin').get(`/api/nodes/${id}/instances`)).status).toBe(503)
    api.fakes.engine.setUnavailable(false)
    await api.services.nodes.watch()
    const told = api.events().filter(({ type }) => type.startsWith('node.'))
    expect(told.map(({ type, payload }) => [type, payload.node_id])).toEqual([
      ['node.unreachable', id],
      ['node.ready', id],
    ])
    expect((await get(`/api/nodes/${id}/health`)).data.checks.engine.ok).toBe(true)
  })
  it('shows what runs on it to those who may see its project', async () => {
    commitShop(api, 'one')
    const app = (
      await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
    ).body.data
    await api.services.jobs.idle()
    const { data, total } = await get(`/api/nodes/${id}/instances`, 'developer')
    expect([total, data[0]]).toMatchObject([
      1,
      {
        owner_kind: 'app',
        owner_id: app.id,
        owner_name: 'shop',
        process: 'web',
        state: 'running',
        cpus: expect.any(Number),
      },
    ])
    expect(await get(`/api/nodes/${id}/instances`, 'outsider')).toMatchObject({ data: [], total: 0 })
    expect((await get(`/api/nodes/${id}`)).data.use).toMatchObject({
      instances: 1,
      committed_memory_bytes: data[0].memory_bytes,
    })
  })
  it('takes labels of the administrator in the place of all, with a line in the audit log', async () => {
    const change = { labels: { 'location/rack': '4', disk: 'nvme' } }
    expect((await api.as('admin').put(`/api/nodes/${id}`, change)).body.data.labels).toEqual(change.labels)
    expect((await api.as('admin').put(`/api/nodes/${id}`, { labels: {} })).body.data.labels).toEqual({})
    expect((await api.as('developer').put(`/api/nodes/${id}`, change)).status).toBe(403)
    const { data } = await get('/api/audit-logs?resource=node')
    expect(data.map(({ action, resource }: any) => [action, resource.id])).toEqual([
      ['node.update', id],
      ['node.update', id],
    ])
    const answer = await api.as('admin').put(`/api/nodes/${id}`, { labels: { constructor: 'x' } })
    expect([answer.status, answer.body.error.message]).toEqual([
      422,
      'labels.constructor: cannot be used as a name here. Choose another.',
    ])
    for (const labels of [{ 'Not a key': 'x' }, { key: 'two\nlines' }, { key: 1 }])
      expect((await api.as('admin').put(`/api/nodes/${id}`, { labels })).status).toBe(422)
  })
  it('stays, active and a manager, since it is the only one', async () => {
    const admin = api.as('admin')
    for (const [answer, sentence] of [
      [await admin.delete(`/api/nodes/${id}`), /cannot be removed/],
      [await admin.post(`/api/nodes/${id}/drain`), /only server.*cannot be moved/],
      [await admin.put(`/api/nodes/${id}`, { role: 'worker' }), /stays a manager/],
      [await admin.put(`/api/nodes/${id}`, { availability: 'drain' }), /cannot be moved/],
    ] as const)
      expect([answer.status, answer.body.error.message]).toEqual([409, expect.stringMatching(sentence)])
    expect((await admin.post(`/api/nodes/${id}/activate`)).body.data).toMatchObject({
      id,
      availability: 'active',
    })
    expect((await admin.get('/api/nodes/node_unknown')).status).toBe(404)
  })
})
