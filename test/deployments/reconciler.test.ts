import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { testWorkload } from '#test/support/workload'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

/** An app that is live; answers its id. */
async function liveShop(): Promise<string> {
  commitShop(api, 'first')
  const body = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  const { id } = (await api.as('developer').post('/api/apps', body)).body.data
  await api.services.jobs.idle()
  return id
}
/** From here on the reconciler hears what the engine tells. */
async function listen(): Promise<void> {
  await api.services.deployments.reconciler.start()
  await expect.poll(() => api.fakes.engine.calls.some(({ method }) => method === 'events')).toBe(true)
}

it('the end of a command beside an app is not told as the end of one of its instances', async () => {
  const id = await liveShop()
  await listen()
  expect((await api.as('developer').post(`/api/apps/${id}/exec`, { command: 'true' })).status).toBe(200)
  const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
  api.fakes.engine.crash(instance!.id, 3)
  const exits = () =>
    api
      .events()
      .filter(({ type }) => type === 'app.instance_exited')
      .map(({ payload }) => payload)
  await expect.poll(() => exits().length).toBeGreaterThan(0)
  expect(exits()).toMatchObject([{ instance_id: instance!.id, exit_code: 3 }])
})

it('a program that lets its children be killed for memory without end is told of once a minute', async () => {
  const id = await liveShop()
  await listen()
  const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id } })
  for (let kill = 0; kill < 200; kill++) api.fakes.engine.killChild(instance!.id)
  api.fakes.engine.crash(instance!.id, 137)
  await expect.poll(() => told('app.instance_exited').length).toBe(1)
  expect(told('app.oom_killed')).toHaveLength(1)
})

it('an app that cannot be started is tried once in half a minute, however often others end meanwhile', async () => {
  const id = await liveShop()
  const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id } })
  api.fakes.engine.behave(`portreeve/${id}*`, { start: 'refused' })
  api.fakes.engine.vanish(instance!.id)
  for (let look = 0; look < 5; look++) await api.services.deployments.reconciler.reconcile()
  expect(told('app.restored')).toHaveLength(1)
})

it('F11: an image that is gone is made again, once; an app that cannot be built any more says so', async () => {
  const id = await liveShop()
  const instances = () => api.fakes.engine.instances({ owner: { kind: 'app', id } })
  const loseImage = async () => {
    for (const { id: instance, image } of await instances()) {
      api.fakes.engine.vanish(instance)
      await api.fakes.engine.removeImage(image)
    }
    await api.services.deployments.reconciler.reconcile()
    await api.services.jobs.idle()
  }
  const app = async () => (await api.as('developer').get(`/api/apps/${id}`)).body.data
  await loseImage()
  expect([(await app()).status, (await instances()).map(({ state }) => state)]).toEqual([
    'running',
    ['running'],
  ])
  api.fakes.engine.behave('*', { build: 'fail' })
  await loseImage()
  await api.services.deployments.reconciler.reconcile()
  expect(await app()).toMatchObject({
    ...{
      status: 'failed',
      last_error: expect.stringMatching(/^The image \S+ is not on this machine\. Deploy again/),
    },
  })
  const tried = (await api.as('developer').get(`/api/apps/${id}/deployments`)).body.data.length
  await api.services.deployments.reconciler.reconcile()
  await api.services.jobs.idle()
  expect((await api.as('developer').get(`/api/apps/${id}/deployments`)).body.data.length).toBe(tried)
})

it('a deployment does not make the whole server be looked at: instances that a job starts are its own', async () => {
  const whole = () =>
    api.fakes.engine.calls.filter(
      ({ method, args }) => method === 'instances' && Object.keys(args[0] as object).length === 0,
    ).length
  await listen()
  const before = whole()
  const id = await liveShop()
  expect(await api.fakes.engine.instances({ owner: { kind: 'app', id } })).toHaveLength(1)
  expect(whole()).toBe(before)
})

const PACKAGE = {
  'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
  'server.js': '//',
}
const NOBODY = testWorkload({
  image: 'redis:7',
  owner: { kind: 'app', id: 'app_gone' },
  project_id: 'prj_gone',
  release_id: 'rel_gone',
  network: 'left-over',
})
/** A running app. */
async function running(body: Record<string, unknown> = {}): Promise<string> {
  api.fakes.git.commit(SHOP_URL, 'main', PACKAGE)
  const { id } = (
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0, ...body })
  ).body.data
  await api.services.jobs.idle()
  return id
}
const status = async (id: string) => (await api.as('viewer').get(`/api/apps/${id}`)).body.data.status
const told = (type: string) => api.events().filter((event) => event.type === type)
/** Ends an instance and waits until the engine has started it again. */
async function endOnce(app_id: string, index = 0): Promise<void> {
  const find = async () =>
    (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })).find(
      (instance) => instance.index === index,
    )!
  const before = await find()
  api.fakes.engine.crash(before.id, 3)
  await expect.poll(async () => (await find()).restart_count).toBe(before.restart_count + 1)
  await expect.poll(async () => (await find()).state).toBe('running')
  await api.services.deployments.reconciler.reconcile()
}
const servers = (app_id: string) =>
  [...api.fakes.ingress.routes.values()]
    .filter((route) => route.app_id === app_id)
    .flatMap((route) => route.servers.map(({ address }) => address))

describe('how an app is called', () => {
  it('a single end of its one instance is told as an event, and the app stays running', async () => {
    const id = await running()
    await api.services.deployments.reconciler.start()
    await expect.poll(() => api.fakes.engine.calls.some(({ method }) => method === 'events')).toBe(true)
    await endOnce(id)
    await expect.poll(() => told('app.instance_exited').length).toBe(1)
    expect([await status(id), told('app.crashed').length]).toEqual(['running', 0])
  })

  it('is crashed when its one instance ends again and again, once', async () => {
    const id = await running()
    await api.services.deployments.reconciler.reconcile()
    for (let i = 0; i < 6; i += 1) {
      await endOnce(id)
      api.fakes.clock.advance(1000)
    }
    expect([await status(id), told('app.crashed').length, told('app.running').length]).toEqual([
      'crashed',
      1,
      1,
    ])
    const { last_error } = (await api.as('viewer').get(`/api/apps/${id}`)).body.data
    expect(last_error).toMatch(/^Nothing of the app serves: it ends.* Look at its log\.$/)
  })

  it('is running while another replica answers, however often the first one ends', async () => {
    const id = await running({ replicas: 2 })
    await api.services.deployments.reconciler.reconcile()
    for (let i = 0; i < 6; i += 1) await endOnce(id)
    expect([await status(id), told('app.crashed').length]).toEqual(['running', 0])
  })
})

describe('a look at what runs', () => {
  it('brings a vanished instance back, sends the traffic to it, and tells so', async () => {
    const id = await running()
    const [before] = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    api.fakes.engine.vanish(before!.id)
    await api.services.deployments.reconciler.reconcile()
    const after = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    expect(after.map(({ state, release_id }) => [state, release_id])).toEqual([
      ['running', before!.release_id],
    ])
    expect(servers(id)).toEqual(after.map(({ address }) => address))
    expect(told('app.restored').map(({ payload }) => payload)).toMatchObject([{ found: 0, wanted: 1 }])
    api.fakes.engine.crash(after[0]!.id)
    await expect
      .poll(
        async () => (await api.fakes.engine.instances({ owner: { kind: 'app', id: id } }))[0]!.restart_count,
      )
      .toBe(1)
  })

  it('leaves an app alone that a job works on: neither its instances nor its traffic', async () => {
    const id = await running()
    const release = api.fakes.git.hold(SHOP_URL)
    await api.as('developer').post(`/api/apps/${id}/deploy`, { no_cache: true })
    const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    api.fakes.engine.vanish(instance!.id)
    const before = servers(id)
    await api.services.deployments.reconciler.reconcile()
    expect([
      await api.fakes.engine.instances({ owner: { kind: 'app', id: id } }),
      servers(id),
      told('app.restored').length,
    ]).toEqual([[], before, 0])
    release()
    await api.services.jobs.idle()
  })

  it('removes instances that nobody owns', async () => {
    await running()
    api.fakes.engine.addImage('redis:7')
    await api.fakes.engine.ensureNetwork('left-over', {})
    await api.fakes.engine.ensureRelease(NOBODY, new AbortController().signal)
    await api.services.deployments.reconciler.reconcile()
    expect((await api.fakes.engine.instances({})).map(({ release_id }) => release_id)).not.toContain(
      'rel_gone',
    )
    expect(await api.fakes.engine.instances({})).toHaveLength(1)
  })

  it('keeps the release that a deployment has started and the one it may go back to, and the folder that it works in', async () => {
    const id = await running()
    await api.as('developer').put(`/api/apps/${id}`, { soak_seconds: 300 })
    const [old] = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    const deployment = (await api.as('developer').post(`/api/apps/${id}/deploy`, { no_cache: true })).body
      .data.id
    const step = async () =>
      (await api.as('viewer').get(`/api/deployments/${deployment}`)).body.data.steps.find(
        (one: { status: string }) => one.status === 'running',
      )?.name
    await expect.poll(step).toBe('soak')
    const folders = readdirSync(api.services.deployments.context.work_directory)
    const both = (await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).map(
      (instance) => instance.id,
    )
    await api.services.deployments.reconciler.reconcile()
    expect(
      (await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).map((instance) => instance.id),
    ).toEqual(both)
    expect([both.length, both.includes(old!.id), folders.length]).toEqual([2, true, 1])
    expect(readdirSync(api.services.deployments.context.work_directory)).toEqual(folders)
    await api.as('developer').post(`/api/deployments/${deployment}/cancel`)
    await api.services.jobs.idle()
  })

  it('keeps instances that a job has started before the app has gone over to them', async () => {
    const id = await running()
    api.fakes.engine.behave(`app=${id}`, { start: 'never_listens' })
    const deployment = (await api.as('developer').post(`/api/apps/${id}/deploy`, { no_cache: true })).body
      .data.id
    await expect
      .poll(async () => (await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).length)
      .toBe(2)
    await api.services.deployments.reconciler.reconcile()
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toHaveLength(2)
    await api.as('developer').post(`/api/deployments/${deployment}/cancel`)
    await api.services.jobs.idle()
  })
})
