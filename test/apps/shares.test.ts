import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const GIB = 1024 ** 3
const URL = 'https://git.example.com/team/shop.git'

let api: TestApi
let project_id: string
beforeEach(async () => {
  api = await createTestApi()
  project_id = api.services.http.default_project()
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
})
afterEach(() => api.close())

const setQuotas = async (quotas: object) =>
  expect((await api.as('admin').put(`/api/projects/${project_id}`, { quotas })).status).toBe(200)
const create = (name: string, memory_bytes: number, more: object = {}) =>
  api.as('developer').post('/api/apps', {
    name,
    git_url: URL,
    soak_seconds: 0,
    limits: { memory_bytes, cpus: 1 },
    ...more,
  })
const refusal =
  /^Apps and databases of the project may use 2147483648 bytes of memory together, and would use /

it('memory is enforced when an app is created, changed, scaled and moved', async () => {
  await setQuotas({ memory_bytes: 2 * GIB })
  const shop = await create('shop', GIB)
  expect(shop.status).toBe(201)
  await api.services.jobs.idle()
  const more = await create('more', GIB, { replicas: 2 })
  expect([more.status, more.body.error.message]).toEqual([409, expect.stringMatching(refusal)])
  expect((await api.as('viewer').get('/api/apps')).body.data).toHaveLength(1)
  const change = (body: object) => api.as('developer').put(`/api/apps/${shop.body.data.id}`, body)
  expect((await change({ replicas: 3 })).status).toBe(409)
  expect((await change({ limits: { memory_bytes: 3 * GIB } })).status).toBe(409)
  expect((await change({ replicas: 2 })).status).toBe(200)
  expect((await create('default', 0, { limits: undefined })).status).toBe(409)

  const other = (await api.as('admin').post('/api/projects', { name: 'Other' })).body.data.id
  const theirs = await api.as('admin').post('/api/apps', {
    name: 'theirs',
    source: 'upload',
    project_id: other,
    limits: { memory_bytes: GIB },
  })
  const moved = await api.as('admin').post(`/api/apps/${theirs.body.data.id}/move`, { project_id })
  expect([moved.status, moved.body.error.message]).toEqual([409, expect.stringMatching(refusal)])
})

it('cores are counted in the same way', async () => {
  await setQuotas({ cpus: 1.5 })
  expect((await create('one', GIB)).status).toBe(201)
  const two = await create('two', GIB)
  expect([two.status, two.body.error.message]).toEqual([
    409,
    'Apps and databases of the project may use 1.5 CPU cores together, and would use 2. Lower limits or replicas, or ask an administrator to raise the quota cpus.',
  ])
})

it('a quota that is lowered stops deployments until the app fits, and what shrinks may shrink', async () => {
  const { id } = (await create('shop', 2 * GIB, { replicas: 2 })).body.data
  await api.services.jobs.idle()
  await setQuotas({ memory_bytes: 2 * GIB })
  expect((await api.as('developer').post(`/api/apps/${id}/deploy`, {})).status).toBe(409)
  expect((await api.as('developer').put(`/api/apps/${id}`, { replicas: 1 })).status).toBe(200)
  // What runs uses more than what is configured, until it is deployed; a restart of it is no more than that.
  expect((await create('more', GIB / 16)).status).toBe(409)
  expect((await api.as('developer').post(`/api/apps/${id}/restart`, {})).status).toBe(200)
  await api.services.jobs.idle()
  expect((await api.as('developer').post(`/api/apps/${id}/deploy`, {})).status).toBe(201)
  await api.services.jobs.idle()
  await setQuotas({ memory_bytes: 3 * GIB })
  expect((await create('more', GIB / 16)).status).toBe(201)
})

it('a rollback to a larger release needs room for it', async () => {
  const { id } = (await create('shop', 2 * GIB)).body.data
  await api.services.jobs.idle()
  const [first] = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data
  await api.as('developer').put(`/api/apps/${id}`, { limits: { memory_bytes: GIB } })
  await api.as('developer').post(`/api/apps/${id}/deploy`, {})
  await api.services.jobs.idle()
  await setQuotas({ memory_bytes: 1.5 * GIB })
  const rollback = () => api.as('developer').post(`/api/apps/${id}/rollback`, { deployment_id: first.id })
  const back = await rollback()
  expect([back.status, back.body.error.message]).toEqual([
    409,
    expect.stringContaining('would use 2147483648'),
  ])
  await setQuotas({})
  expect((await rollback()).status).toBe(201)
})
