import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })).body
    .data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

const request = (what: 'start' | 'stop') => api.as('developer').post(`/api/apps/${app_id}/${what}`)
const done = async (what: 'start' | 'stop') => {
  expect((await request(what)).status).toBe(200)
  await api.services.jobs.idle()
}
const app = async () => (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
const instances = () => api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
const servers = () =>
  [...api.fakes.ingress.routes.values()]
    .filter((route) => route.app_id === app_id)
    .flatMap((route) => route.servers.map(({ address }) => address))
const failures = () =>
  api
    .events()
    .filter(({ type }) => type === 'app.start_failed')
    .map(({ payload }) => payload.error)
const behave = (behaviour: Parameters<typeof api.fakes.engine.behave>[1]) =>
  api.fakes.engine.behave(`app=${app_id}`, behaviour)

describe('the start of a stopped app', () => {
  beforeEach(() => done('stop'))

  it('gives it the traffic once its instances are ready, and the engine keeps them alive', async () => {
    await done('start')
    const [instance] = await instances()
    expect([servers(), (await app()).status]).toEqual([[instance!.address], 'running'])
    api.fakes.engine.crash(instance!.id)
    await expect.poll(async () => (await instances())[0]!.restart_count).toBe(1)
  })

  it('fails when it lives but does not become ready: told as that and not as an exit, and it stays stopped without traffic', async () => {
    behave({ start: 'never_listens' })
    await request('start')
    await expect.poll(async () => (await instances()).length).toBe(1)
    await expect
      .poll(
        () =>
          api.services.jobs
            .steps(api.services.jobs.findBySubject(app_id)!.id)
            .find(({ name }) => name === 'verify')!.status,
      )
      .toBe('running')
    expect(servers()).toEqual([])
    api.fakes.clock.advance(61_000)
    await api.services.jobs.idle()
    expect(failures()).toEqual([
      'The app did not become ready within 60 seconds: port 3000: nothing listens.',
    ])
    expect([(await app()).status, await instances(), servers()]).toEqual(['stopped', [], []])
  })

  it('fails as soon as an instance ends, without waiting for the rest of the time, and says how it ended', async () => {
    behave({ start: 'never_listens' })
    await request('start')
    await expect.poll(async () => (await instances()).length).toBe(1)
    const [instance] = await instances()
    api.fakes.engine.crash(instance!.id, 7)
    await api.services.jobs.idle()
    expect(failures()).toEqual(['The app exited with code 7 before it was ready.'])
    expect([(await app()).status, servers()]).toEqual(['stopped', []])
  })

  it('fails when an instance is removed meanwhile, however many are left', async () => {
    behave({ start: 'never_listens' })
    await request('start')
    await expect.poll(async () => (await instances()).length).toBe(1)
    api.fakes.engine.vanish((await instances())[0]!.id)
    await api.services.jobs.idle()
    expect(failures()).toEqual(['An instance of the release was removed from outside.'])
    expect([(await app()).status, servers()]).toEqual(['stopped', []])
  })
})

describe('what is asked for', () => {
  const last = () => api.services.jobs.findBySubject(app_id)!.id
  it('is answered with the state that it leads to and the job that does it', async () => {
    // A request in flight keeps the stop from ending before the questions that follow.
    const address = (await instances())[0]!.address!
    api.fakes.ingress.hold(address, 3000, 1)
    const stopping = await request('stop')
    expect(stopping.body.data).toMatchObject({ status: 'stopping', job_id: last() })
    expect((await request('stop')).body.data).toMatchObject({ status: 'stopping', job_id: last() })
    expect((await request('start')).status).toBe(409)
    api.fakes.ingress.hold(address, 3000, 0)
    await api.services.jobs.idle()
    expect((await app()).status).toBe('stopped')
    const starting = await request('start')
    expect(starting.body.data).toMatchObject({ status: 'starting', job_id: last() })
    expect((await api.as('viewer').get(`/api/system/jobs/${starting.body.data.job_id}`)).status).toBe(200)
    await api.services.jobs.idle()
    expect((await app()).status).toBe('running')
  })
  it('as a stop ends a start that is under way, and leaves nothing running', async () => {
    await done('stop')
    behave({ start: 'never_listens' })
    await request('start')
    await expect.poll(async () => (await instances()).length).toBe(1)
    await done('stop')
    expect([(await app()).status, await instances(), failures()]).toEqual(['stopped', [], []])
  })
  it('and fails stands in last_error until it succeeds', async () => {
    await done('stop')
    behave({ start: 'exits', exit_code: 3 })
    await done('start')
    expect((await app()).last_error).toContain('exited with code 3')
    behave({})
    await done('start')
    expect(await app()).toMatchObject({ status: 'running', last_error: null })
  })
  it('as a deletion while the app is stopped is done after that', async () => {
    await request('stop')
    expect((await api.as('owner').delete(`/api/apps/${app_id}`)).status).toBe(200)
    await api.services.jobs.idle()
    expect((await api.as('viewer').get(`/api/apps/${app_id}`)).status).toBe(404)
  })
})

describe('an image that was removed behind our back', () => {
  const image = () => {
    const { live_release_id } = api.services.apps.find(app_id)!
    return api.services.deployments.context.releases.find(live_release_id!)!.image_id
  }
  const remove = async () => {
    await api.fakes.engine.removeImage(image())
    expect(await api.fakes.engine.findImage(image())).toBeUndefined()
  }
  const deployments = async () =>
    (await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.data as {
      status: string
      trigger: string
      commit: { sha: string }
    }[]

  it('is built again by a start, from the commit that was live and not from a newer one', async () => {
    const [live] = await deployments()
    await done('stop')
    await remove()
    api.fakes.git.commit(URL, 'main', { 'server.js': '// newer' })
    await done('start')
    expect(await app()).toMatchObject({ status: 'running', last_error: null })
    const [remade] = await deployments()
    expect(remade).toMatchObject({ status: 'live', trigger: 'restart', commit: { sha: live!.commit.sha } })
    expect(await api.fakes.engine.findImage(image())).toBeDefined()
  })
  it('is built again by a restart and by a deployment of the same commit', async () => {
    await done('stop')
    await remove()
    await api.as('developer').post(`/api/apps/${app_id}/restart`)
    await api.services.jobs.idle()
    expect((await deployments())[0]).toMatchObject({ status: 'live', trigger: 'restart' })
    await done('stop')
    await remove()
    await api.as('developer').post(`/api/apps/${app_id}/deploy`)
    await api.services.jobs.idle()
    expect((await deployments())[0]).toMatchObject({ status: 'live', trigger: 'manual' })
    expect(await api.fakes.engine.findImage(image())).toBeDefined()
  })
  it('is pulled again where it was pulled', async () => {
    app_id = (
      await api.as('developer').post('/api/apps', { name: 'site', image: 'nginx:1.29', soak_seconds: 0 })
    ).body.data.id
    await api.services.jobs.idle()
    await done('stop')
    await remove()
    await done('start')
    expect((await app()).status).toBe('running')
  })
  it('that cannot be made again leaves the app failed with the reason, and the next start tries again', async () => {
    await done('stop')
    await remove()
    api.fakes.git.deleteRepository(URL)
    await done('start')
    const { status, last_error } = await app()
    expect([status, last_error]).toEqual(['failed', expect.stringContaining('no Git repository')])
  })
})

describe('the start of a crashed app', () => {
  const reconcile = () => api.services.deployments.reconciler.reconcile()
  const startedAt = async () => (await instances()).map(({ started_at }) => started_at)

  beforeEach(async () => {
    behave({ start: 'exits', exit_code: 9 })
    const [instance] = await instances()
    await reconcile()
    api.fakes.engine.crash(instance!.id, 9)
    await expect.poll(async () => (await instances())[0]!.restart_count).toBeGreaterThan(3)
    await reconcile()
    expect((await app()).status).toBe('crashed')
  })

  it('fails as soon as it ends again, however often the engine starts it by itself, and says how it ended', async () => {
    await done('start')
    expect(failures()).toEqual(['The app exited with code 9 before it was ready.'])
    expect((await app()).status).toBe('crashed')
  })

  it('fails as soon as an instance ends that was up when it was asked for, and says how', async () => {
    behave({ start: 'never_listens' })
    const before = await startedAt()
    await expect.poll(startedAt).not.toEqual(before)
    await expect.poll(async () => (await instances())[0]!.state).toBe('running')
    await request('start')
    await expect
      .poll(
        () =>
          api.services.jobs
            .steps(api.services.jobs.findBySubject(app_id)!.id)
            .find(({ name }) => name === 'verify')!.status,
      )
      .toBe('running')
    api.fakes.engine.crash((await instances())[0]!.id, 7)
    await api.services.jobs.idle()
    expect(failures()).toEqual(['The app exited with code 7 before it was ready.'])
  })

  it('gives it the traffic again once the cause is gone, and the engine keeps it alive', async () => {
    behave({})
    await done('start')
    const [instance] = await instances()
    expect([servers(), (await app()).status]).toEqual([[instance!.address], 'running'])
    api.fakes.engine.crash(instance!.id)
    await expect.poll(async () => (await instances())[0]!.restart_count).toBe(instance!.restart_count + 1)
  })
})
