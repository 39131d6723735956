import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'v1')
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

const create = (body: object = {}) =>
  api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0, ...body })
const running = async (): Promise<string> => {
  const { body } = await create()
  await api.services.jobs.idle()
  return body.data.id
}
const app = async (id: string) => (await api.as('viewer').get(`/api/apps/${id}`)).body.data
const audited = (id: string) =>
  api.kernel.db.sql('SELECT action FROM audit_log WHERE resource_id = ? ORDER BY seq').pluck().all(id)

describe('an app', () => {
  it('is made with its name, its first deployment, an event and a line of the audit log, all or none', async () => {
    const since = api.services.events.latest()
    const { status, body } = await create()
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      status: 'building',
      source: 'git',
      latest_deployment: { number: 1, status: 'queued' },
    })
    expect(body.data.domain).toMatch(/^shop\./)
    expect(api.events(since).map(({ type }) => type)).toEqual(
      expect.arrayContaining(['app.created', 'deployment.queued']),
    )
    expect(audited(body.data.id)).toEqual(['app.create'])
    const before = api.services.events.latest()
    expect((await create()).body.error).toMatchObject({
      code: 'CONFLICT',
      message: 'An app named shop exists already. Choose another name.',
    })
    expect(api.events(before)).toEqual([])
  })
  it('that is uploaded waits for its archive: nothing is deployed before', async () => {
    const { body } = await create({ git_url: undefined, source: 'upload' })
    expect(body.data.latest_deployment).toBeNull()
    expect(api.fakes.engine.calls.filter(({ method }) => method === 'buildImage')).toEqual([])
  })
  it('changes only what is given, says so, and waits for a deployment to run it', async () => {
    const id = await running()
    expect((await app(id)).needs_redeploy).toBe(false)
    const { status, body } = await api.as('developer').put(`/api/apps/${id}`, { port: 8080 })
    expect([status, body.data.port, body.data.replicas]).toEqual([200, 8080, 1])
    expect(await app(id)).toMatchObject({ needs_redeploy: true, changed_keys: ['port'] })
    expect(audited(id)).toEqual(['app.create', 'app.update'])
  })
  it('that is renamed has the new name below the base domain', async () => {
    const id = await running()
    await api.as('developer').put(`/api/apps/${id}`, { name: 'store' })
    expect((await app(id)).domain).toMatch(/^store\./)
    expect((await api.as('developer').get('/api/apps')).body.data[0].domain).toMatch(/^store\./)
  })
  it('stops and starts again with the same release, each as a job that can be followed', async () => {
    const id = await running()
    const { live_deployment_id } = await app(id)
    for (const [verb, status] of [
      ['stop', 'stopped'],
      ['start', 'running'],
    ] as const) {
      const { body } = await api.as('developer').post(`/api/apps/${id}/${verb}`)
      await api.services.jobs.idle()
      const job = (await api.as('viewer').get(`/api/system/jobs/${body.data.job_id}`)).body.data
      expect(job).toMatchObject({ kind: `app.${verb}`, subject: id, status: 'succeeded' })
      expect(await app(id)).toMatchObject({ status, live_deployment_id })
    }
    expect(audited(id)).toEqual(['app.create', 'app.stop', 'app.start'])
  })
  it('that never served has nothing to start', async () => {
    const { body } = await create({ git_url: undefined, source: 'upload' })
    const { status } = await api.as('developer').post(`/api/apps/${body.data.id}/start`)
    expect(status).toBe(409)
  })
  it('is deleted with its name, its instances and its domains; the name is free afterwards', async () => {
    const id = await running()
    const { status } = await api.as('owner').delete(`/api/apps/${id}?skip_backup=true`)
    expect(status).toBe(200)
    await api.services.jobs.idle()
    expect((await api.as('viewer').get(`/api/apps/${id}`)).status).toBe(404)
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id } })).toEqual([])
    expect((await create()).status).toBe(201)
  })
})

it('apps are listed by their ids, a hundred at once, and nobody learns of one that they may not see', async () => {
  const ids: string[] = []
  for (const name of ['one', 'two', 'three']) ids.push((await create({ name })).body.data.id)
  const [one, , three] = ids
  const named = async (who: 'viewer' | 'outsider', query: string) => {
    const { body } = await api.as(who).get(`/api/apps?${query}`)
    return [body.total, body.data.map(({ name }: { name: string }) => name)]
  }
  expect(await named('viewer', `id=${one}&id=${three}&id=app_00000000000000000000`)).toEqual([
    2,
    ['three', 'one'],
  ])
  expect(await named('viewer', `id=${ids.join()}&per_page=1`)).toEqual([3, ['three']])
  expect(await named('outsider', `id=${one}`)).toEqual([0, []])
  const many = Array.from({ length: 101 }, (_, at) => `app_${at}`).join()
  expect((await api.as('viewer').get(`/api/apps?id=${many}`)).status).toBe(400)
})
