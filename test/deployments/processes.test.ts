import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const call = () => api.as('developer')
const FILES = { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}', 'server.js': '//' }
const commit = (procfile: string, text = procfile) =>
  api.fakes.git.commit(SHOP_URL, 'main', { ...FILES, Procfile: procfile }, text)
const QUICK = { grace_s: 1 }
async function create(more: Record<string, unknown> = {}) {
  const { body } = await call().post('/api/apps', {
    name: 'shop',
    git_url: SHOP_URL,
    soak_seconds: 0,
    ...more,
  })
  await api.services.jobs.idle()
  return body.data.id as string
}
const app = async (id: string) => (await call().get(`/api/apps/${id}`)).body.data
const deployment = async (id: string) =>
  (await call().get(`/api/deployments/${(await app(id)).latest_deployment.id}`)).body.data
const instances = async (id: string) =>
  ((await call().get(`/api/apps/${id}/instances`)).body.data as { process: string; index: number }[]).map(
    ({ process, index }) => `${process} ${index}`,
  )
const started = (process: string) =>
  api.fakes.engine.calls.findLast(
    ({ method, args }) => method === 'ensureRelease' && ((args[0] as any).process ?? 'web') === process,
  )!.args[0] as any
const routes = (id: string) => [...api.fakes.ingress.routes.values()].filter((route) => route.app_id === id)

describe('processes of a Procfile', () => {
  test('run beside web in the same release, with commands, replicas and limits of their own', async () => {
    commit('web: node server.js\nworker: node worker.js\nconsole: node\nrelease: true')
    const id = await create({
      processes: { worker: { replicas: 2, limits: { memory_bytes: 1e8 }, ...QUICK } },
    })
    expect(await deployment(id)).toMatchObject({ status: 'live', error: null })
    expect(await instances(id)).toEqual(['web 0', 'worker 0', 'worker 1'])
    expect(started('worker')).toMatchObject({
      shell_command: 'node worker.js',
      limits: { memory_bytes: 1e8 },
      probe: { type: 'none', grace_s: 1 },
    })
    expect(routes(id)[0]!.servers).toHaveLength(1)
    await call().put(`/api/apps/${id}`, { processes: { worker: { replicas: 0 } } })
    expect((await app(id)).changed_keys).toEqual(['processes'])
    await call().post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    expect(await instances(id)).toEqual(['web 0'])
    await call().post(`/api/apps/${id}/rollback`)
    await api.services.jobs.idle()
    expect(await instances(id)).toEqual(['web 0', 'worker 0', 'worker 1'])
  })

  test('fail the deployment when one of them ends within its grace, and the old release serves on', async () => {
    commit('web: node server.js\nworker: node worker.js')
    const id = await create({ processes: { worker: QUICK } })
    const before = await instances(id)
    await call().put(`/api/apps/${id}`, { processes: { worker: { grace_s: 60 } } })
    commit('web: node server.js\nworker: node worker.js', 'broken')
    await call().post(`/api/apps/${id}/deploy`)
    await expect
      .poll(async () => {
        const all = await api.fakes.engine.instances({ owner: { kind: 'app', id } })
        return all.filter(({ process }) => process === 'worker')[1]
      })
      .toBeDefined()
    const live = (await app(id)).live_deployment_id
    for (const one of await api.fakes.engine.instances({ owner: { kind: 'app', id } }))
      if (one.process === 'worker' && one.release_id === started('worker').release_id)
        api.fakes.engine.crash(one.id, 7)
    await api.services.jobs.idle()
    expect((await deployment(id)).error).toMatchObject({
      code: 'exited',
      step: 'verify',
      message: 'The process worker of the app exited with code 7 before it was ready.',
    })
    expect([await app(id), await instances(id)]).toMatchObject([
      { status: 'running', live_deployment_id: live },
      before,
    ])
  })

  test('are restored one by one when they vanish', async () => {
    commit('web: node server.js\nworker: node worker.js')
    const id = await create({ processes: { worker: QUICK } })
    const [web, worker] = await api.fakes.engine.instances({ owner: { kind: 'app', id } })
    api.fakes.engine.vanish(worker!.id)
    await api.services.deployments.reconciler.reconcile()
    const after = await api.fakes.engine.instances({ owner: { kind: 'app', id } })
    expect([after[0]!.id, after[1]!.process]).toEqual([web!.id, 'worker'])
  })
})

describe('an app without web', () => {
  test('is a Procfile that names others only: it has no domain, no route, no port and no probe', async () => {
    commit('worker: node bot.js')
    const id = await create({ processes: { worker: QUICK } })
    expect(await deployment(id)).toMatchObject({ status: 'live', error: null })
    expect(await app(id)).toMatchObject({ status: 'running', domain: '', url: '' })
    expect([await instances(id), routes(id)]).toEqual([['worker 0'], []])
    expect(started('worker').environment).not.toHaveProperty('PORT')
    expect((await call().get(`/api/domains?app_id=${id}`)).body.total).toBe(0)
    await call().post(`/api/apps/${id}/stop`)
    await api.services.jobs.idle()
    expect([(await app(id)).status, await instances(id)]).toEqual(['stopped', []])
    await call().post(`/api/apps/${id}/start`)
    await api.services.jobs.idle()
    expect([(await app(id)).status, await instances(id)]).toEqual(['running', ['worker 0']])
  })

  test('is an image that says so, and crashes and recovers like any other', async () => {
    api.fakes.engine.addImage('bot:1')
    const { body } = await call().post('/api/apps', {
      name: 'bot',
      image: 'bot:1',
      soak_seconds: 0,
      processes: { web: { replicas: 0 }, bot: QUICK },
    })
    expect(body.data.domain).toBe('')
    await api.services.jobs.idle()
    const { id } = body.data
    expect([(await app(id)).status, await instances(id)]).toEqual(['running', ['bot 0']])
    expect(started('bot')).not.toHaveProperty('shell_command')
  })

  test('gets its name once it has a web process, and loses it again', async () => {
    commit('worker: node bot.js')
    const id = await create({ processes: { worker: QUICK } })
    commit('web: node server.js\nworker: node bot.js')
    await call().post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    expect((await app(id)).domain).toMatch(/^shop\./)
    expect(routes(id)[0]!.servers).toHaveLength(1)
    await call().post(`/api/apps/${id}/rollback`)
    await api.services.jobs.idle()
    expect([(await app(id)).domain, routes(id)]).toEqual(['', []])
  })
})

test('what cannot run is refused with a sentence before anything starts', async () => {
  commit('web: node server.js\nworker: node worker.js')
  const wrong = await call().post('/api/apps', {
    name: 'x',
    git_url: SHOP_URL,
    processes: { web: { replicas: 2 } },
  })
  expect([wrong.status, wrong.body.error.message]).toEqual([
    422,
    expect.stringContaining('other fields of the app'),
  ])
  expect(
    (await call().post('/api/apps', { name: 'x', git_url: SHOP_URL, processes: { 'A b': {} } })).status,
  ).toBe(422)
  const id = await create({ processes: { web: { replicas: 0 }, worker: { replicas: 0 } } })
  expect((await deployment(id)).error).toMatchObject({ code: 'nothing_to_run' })
  const volume_id = (await call().post('/api/volumes', { name: 'data' })).body.data.id
  await call().post(`/api/apps/${id}/mounts`, { path: '/data', volume_id })
  await call().put(`/api/apps/${id}`, { processes: {} })
  await call().post(`/api/apps/${id}/deploy`)
  await api.services.jobs.idle()
  expect((await deployment(id)).error).toMatchObject({ code: 'several_writers' })
})
