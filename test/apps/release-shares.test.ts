import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const GIB = 1024 ** 3
const GIT_URL = 'https://git.example.com/team/shop.git'

let api: TestApi
let project_id: string
beforeEach(async () => {
  api = await createTestApi()
  project_id = api.services.http.default_project()
})
afterEach(() => api.close())

const call = () => api.as('developer')
const setQuotas = async (quotas: object) =>
  expect((await api.as('admin').put(`/api/projects/${project_id}`, { quotas })).status).toBe(200)
const HEALTHY = { test: ['CMD', 'true'] }
const service = (mem_limit: string, more: object = {}) => ({
  ...{ image: 'nginx:1.29', healthcheck: HEALTHY, mem_limit },
  ...more,
})
const file = (services: object) => JSON.stringify({ services })
const create = async (body: object) => {
  const made = await call().post('/api/apps', { soak_seconds: 0, ...body })
  expect(made.status).toBe(201)
  return made.body.data.id as string
}
const outcome = async (id: string) => {
  const { latest_deployment } = (await call().get(`/api/apps/${id}`)).body.data
  const { status, error } = (await call().get(`/api/deployments/${latest_deployment.id}`)).body.data
  return { status, message: error?.message ?? null }
}
const deploy = async (id: string) => {
  expect((await call().post(`/api/apps/${id}/deploy`, {})).status).toBe(201)
  await api.services.jobs.idle()
  return outcome(id)
}
const startedOf = (id: string) =>
  api.fakes.engine.calls.filter(
    ({ method, args }) =>
      (method === 'ensureRelease' || method === 'runOnce') && (args[0] as any).owner.id === id,
  ).length
const refused = (would_use: number) => ({
  status: 'failed',
  message: expect.stringContaining(`together, and would use ${would_use}.`),
})

describe('quotas of memory and cores count', () => {
  it('every service of a compose file, with its instances and limits, before anything of it starts', async () => {
    await setQuotas({ memory_bytes: 2 * GIB })
    const big = { web: service('512m'), worker: service('1g', { deploy: { replicas: 2 } }) }
    const id = await create({ name: 'stack', compose: file(big) })
    await api.services.jobs.idle()
    expect([await outcome(id), startedOf(id)]).toEqual([refused(2.5 * GIB), 0])

    const fits = { web: service('512m'), worker: service('1g') }
    expect((await call().put(`/api/apps/${id}`, { compose: file(fits) })).status).toBe(200)
    expect(await deploy(id)).toEqual({ status: 'live', message: null })
    // What runs counts from then on, whatever asks for more.
    const more = await call().post('/api/apps', {
      name: 'more',
      image: 'nginx:1.29',
      limits: { memory_bytes: GIB },
    })
    expect(more.status).toBe(409)
    const database = { name: 'more', engine: 'redis', limits: { memory_bytes: GIB } }
    expect((await call().post('/api/databases', database)).status).toBe(409)

    const cores = { web: service('512m', { cpus: 64 }) }
    await setQuotas({ cpus: 63 })
    expect((await call().put(`/api/apps/${id}`, { compose: file(cores) })).status).toBe(200)
    expect(await deploy(id)).toEqual(refused(64))
  })
  it('processes that only a Procfile names', async () => {
    await setQuotas({ memory_bytes: 2 * GIB })
    api.fakes.git.commit(GIT_URL, 'main', {
      'package.json': '{"scripts":{"start":"node server.js"}}',
      'server.js': '//',
      Procfile: 'web: node server.js\none: node 1\ntwo: node 2',
    })
    const id = await create({ name: 'shop', git_url: GIT_URL, limits: { memory_bytes: GIB } })
    await api.services.jobs.idle()
    expect([await outcome(id), startedOf(id)]).toEqual([refused(3 * GIB), 0])
    const processes = { two: { replicas: 0 }, one: { grace_s: 1 } }
    expect((await call().put(`/api/apps/${id}`, { processes })).status).toBe(200)
    expect((await deploy(id)).status).toBe('live')
  })
  it('two deployments at once, of which one fits', async () => {
    await setQuotas({ memory_bytes: 2 * GIB })
    const compose = file({ web: service('1280m') })
    const ids = await Promise.all(['one', 'two'].map((name) => create({ name, compose })))
    await api.services.jobs.idle()
    const outcomes = await Promise.all(ids.map(outcome))
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['failed', 'live'])
  })
  it('a service that runs to its end', async () => {
    await setQuotas({ memory_bytes: 2 * GIB })
    const services = {
      migrate: service('4g'),
      web: service('512m', { depends_on: { migrate: { condition: 'service_completed_successfully' } } }),
    }
    const id = await create({ name: 'stack', compose: file(services) })
    await api.services.jobs.idle()
    expect((await outcome(id)).status).toBe('failed')
    expect(startedOf(id)).toBe(0)
  })
  it('a release that is gone back to, as it was made', async () => {
    const id = await create({ name: 'stack', compose: file({ web: service('3g') }) })
    await api.services.jobs.idle()
    const [first] = (await call().get(`/api/apps/${id}/deployments`)).body.data
    expect((await call().put(`/api/apps/${id}`, { compose: file({ web: service('1g') }) })).status).toBe(200)
    expect((await deploy(id)).status).toBe('live')
    await setQuotas({ memory_bytes: 2 * GIB })
    const rollback = () => call().post(`/api/apps/${id}/rollback`, { deployment_id: first.id })
    expect([(await rollback()).status, (await call().post(`/api/apps/${id}/restart`, {})).status]).toEqual([
      409, 200,
    ])
    await api.services.jobs.idle()
    await setQuotas({ memory_bytes: GIB / 2 })
    // What runs may be restarted above a quota that was lowered, and is deployed once it fits.
    expect((await call().post(`/api/apps/${id}/restart`, {})).status).toBe(200)
    await api.services.jobs.idle()
    expect((await outcome(id)).status).toBe('live')
    expect(await deploy(id)).toEqual(refused(GIB))
  })
})
