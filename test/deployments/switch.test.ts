import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removableImages } from '#server/deployments/release-images'
import type { Release } from '#server/deployments/releases'
import { pruneImages } from '#server/deployments/steps/switch'
import { EngineError } from '#server/platform/engine/engine'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net' } })
})
afterEach(() => api.close())

const version = (text: string) => commitShop(api, text)
const post = async (what: string, body?: unknown) =>
  (await api.as('developer').post(`/api/apps/${app_id}/${what}`, body)).body.data
const finished = async (what: string, body?: unknown) => {
  const data = await post(what, body)
  await api.services.jobs.idle()
  return data
}
const running = async (body: Record<string, unknown> = {}) => {
  version('v1')
  app_id = (
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0, ...body })
  ).body.data.id
  await api.services.jobs.idle()
}
const instances = () => api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
/** Where the edge sends requests for the app, as it is now. */
const servers = () =>
  [...api.fakes.ingress.routes.values()]
    .filter((route) => route.app_id === app_id)
    .flatMap((route) => route.servers.map(({ address, port }) => `${address}:${port}`))
const deployment = async (id: string) => (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
const stepOf = async (id: string) =>
  (await deployment(id)).steps.find(({ status }: { status: string }) => status === 'running')?.name
const app = async () => (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data

describe('the traffic goes back to the instances that served before', () => {
  /** A second release that has the traffic and is watched. */
  async function soaking(): Promise<{ id: string; before: string[] }> {
    await running()
    const before = servers()
    await api.as('developer').put(`/api/apps/${app_id}`, { soak_seconds: 300 })
    version('v2')
    const { id } = await post('deploy')
    await expect.poll(() => stepOf(id)).toBe('soak')
    expect(before).toHaveLength(1)
    expect(servers()).not.toEqual(before)
    return { id, before }
  }
  const newest = async () =>
    (await instances()).find(
      ({ release_id }) => release_id === api.services.apps.find(app_id)!.live_release_id,
    )!

  it('when an instance of the new release ends while it is watched', async () => {
    const { id, before } = await soaking()
    api.fakes.engine.crash((await newest()).id)
    await api.services.jobs.idle()
    expect([servers(), (await deployment(id)).error.code, (await app()).status]).toEqual([
      before,
      'exited',
      'running',
    ])
  })

  it('when one is removed from outside while it is watched', async () => {
    const { id, before } = await soaking()
    api.fakes.engine.vanish((await newest()).id)
    await api.services.jobs.idle()
    expect([servers(), (await deployment(id)).error.code]).toEqual([before, 'instance_gone'])
  })

  it('when the deployment is cancelled while it is watched', async () => {
    const { id, before } = await soaking()
    await api.as('developer').post(`/api/deployments/${id}/cancel`)
    await api.services.jobs.idle()
    expect([servers(), (await deployment(id)).status]).toEqual([before, 'cancelled'])
  })

  it('and the app says that nothing serves where none of them is there any more', async () => {
    const { id } = await soaking()
    const { id: serving } = await newest()
    for (const one of await instances()) if (one.id !== serving) api.fakes.engine.vanish(one.id)
    await api.as('developer').post(`/api/deployments/${id}/cancel`)
    await api.services.jobs.idle()
    expect([servers(), (await app()).last_error]).toEqual([
      [],
      expect.stringContaining('nothing older serves in its place'),
    ])
  })
})

describe('requests in flight end on the instances that they are on', () => {
  // The second domain leads to a port of its own.
  it.each([
    ['the port of the app', 3000],
    ['the port that another domain leads to', 8080],
  ])('before an old release is removed, on %s', async (_what, port) => {
    await running()
    await secondDomain()
    const [old] = await instances()
    api.fakes.ingress.hold(old!.address!, port, 1)
    version('v2')
    const { id } = await post('deploy')
    await expect.poll(() => stepOf(id)).toBe('retire')
    await asked(old!.address!, port)
    expect((await instances()).map((instance) => instance.id)).toContain(old!.id)
    api.fakes.ingress.hold(old!.address!, port, 0)
    await api.services.jobs.idle()
    expect((await instances()).map((instance) => instance.id)).not.toContain(old!.id)
  })

  it.each([
    ['the port of the app', 3000],
    ['the port that another domain leads to', 8080],
  ])('before a stopped app is removed, on %s, when nothing new comes any more', async (_what, port) => {
    await running()
    await secondDomain()
    const [old] = await instances()
    api.fakes.ingress.hold(old!.address!, port, 1)
    await post('stop')
    await asked(old!.address!, port)
    expect([servers(), (await instances()).length]).toEqual([[], 1])
    api.fakes.ingress.hold(old!.address!, port, 0)
    await api.services.jobs.idle()
    expect([(await instances()).length, (await app()).status]).toEqual([0, 'stopped'])
  })

  it('at most for half a minute', async () => {
    await running()
    const [old] = await instances()
    api.fakes.ingress.hold(old!.address!, 3000, 1)
    await post('stop')
    await asked(old!.address!, 3000)
    api.fakes.clock.advance(30_000)
    await api.services.jobs.idle()
    expect(await instances()).toEqual([])
  })

  async function secondDomain(): Promise<void> {
    api.fakes.dns.set('admin.example.com', {
      A: api.services.addresses
        .of_server()
        .filter((address) => !address.includes(':'))
        .slice(0, 1),
    })
    const { body } = await api
      .as('admin')
      .post('/api/domains', { app_id, hostname: 'admin.example.com', port: 8080 })
    await expect
      .poll(async () => (await api.as('viewer').get(`/api/domains/${body.data.id}`)).body.data.status)
      .toBe('active')
    expect(servers().some((server) => server.endsWith(':8080'))).toBe(true)
  }
  /** Waits until the edge was asked twice about the connections to an instance. */
  const asked = (address: string, port: number) =>
    expect
      .poll(
        () =>
          api.fakes.ingress.calls.filter(
            ({ method, args }) => method === 'activeConnections' && args[0] === address && args[1] === port,
          ).length,
      )
      .toBeGreaterThan(1)
})

it('the release command runs with each deployment of a new version, and with no restart and no rollback', async () => {
  const runs = () =>
    api.fakes.engine.calls.filter(
      ({ method, args }) => method === 'runOnce' && (args[0] as { purpose: string }).purpose === 'release',
    ).length
  await running({ build: { release_command: 'npm run migrate' } })
  expect(runs()).toBe(1)
  version('v2')
  await finished('deploy')
  expect(runs()).toBe(2)
  await finished('restart')
  await finished('rollback')
  expect([runs(), (await app()).latest_deployment]).toMatchObject([2, { status: 'live' }])
})

it('a release command is tried again after a fault of the engine, unless it began', async () => {
  const runs: string[] = []
  let fault: EngineError | undefined
  api.fakes.engine.behave(() => true, {
    run({ purpose }) {
      runs.push(purpose)
      if (fault) throw fault
      return {}
    },
  })
  for (const call of ['ensureNetwork', 'runOnce'] as const) api.fakes.engine.failNext(call)
  await running({ build: { release_command: 'npm run migrate' } })
  expect([runs, await app()]).toMatchObject([['release'], { status: 'running' }])
  fault = new EngineError('failed', 'The container engine could not do this.')
  version('v2')
  const { id } = await finished('deploy')
  expect([runs, (await app()).status, await deployment(id)]).toMatchObject([
    ['release', 'release'],
    'running',
    { status: 'failed', error: { step: 'release', code: 'failed' } },
  ])
})

describe('images', () => {
  const release = (id: string, image_id: string, change: Partial<Release> = {}) =>
    ({ id, image_id, image_present: true, proven: true, ...change }) as Release

  it('of releases to roll back to and of those in use are kept, whatever else is removed', () => {
    const [old, live, kept] = [
      release('rel_old', 'sha256:old'),
      release('rel_live', 'sha256:live'),
      release('rel_kept', 'sha256:kept'),
    ]
    const gone = release('rel_gone', 'sha256:gone', { image_present: false })
    const twin = release('rel_twin', 'sha256:live')
    expect(removableImages([kept], [old, live, kept, gone, twin], new Set(['rel_live']))).toEqual([
      'sha256:old',
    ])
    expect(removableImages([kept], [old, live, kept, gone, twin], new Set())).toEqual([
      'sha256:old',
      'sha256:live',
    ])
  })

  it('beyond the five newest that were live go with the next deployment, and their deployments cannot be rolled back to', async () => {
    await running()
    const first = (await app()).live_deployment_id
    const present = async () => (await api.fakes.engine.listImages({ app: app_id })).length
    for (const text of ['v2', 'v3', 'v4', 'v5']) {
      version(text)
      await finished('deploy')
    }
    expect(await present()).toBe(5)
    version('v6')
    await finished('deploy')
    expect(await present()).toBe(5)
    const { status, body } = await api
      .as('developer')
      .post(`/api/apps/${app_id}/rollback`, { deployment_id: first })
    expect([status, body.error.message]).toEqual([
      409,
      'The image of that release has been removed. Deploy its commit instead.',
    ])
  })

  it('of releases that never proved themselves take the place of none to roll back to', async () => {
    await running()
    const { releases } = api.services.deployments.context
    const live = releases.find(api.services.apps.find(app_id)!.live_release_id!)!
    for (let i = 0; i < 6; i += 1) {
      const id = `rel_unproven${i}`
      releases.ensure(
        {
          ...live,
          id,
          deployment_id: live.deployment_id,
          image_id: `sha256:unproven${i}`,
          image_tag: null,
        },
        {},
        {},
      )
    }
    expect(releases.kept(app_id).map(({ id }) => id)).toEqual([live.id])
  })

  it('of the release that is live stays, however many newer ones there are', async () => {
    await running()
    const { context } = api.services.deployments
    const live = context.releases.find(api.services.apps.find(app_id)!.live_release_id!)!
    for (let i = 0; i < 6; i += 1) {
      context.releases.ensure(
        { ...live, id: `rel_newer${i}`, image_id: `sha256:newer${i}`, image_tag: null },
        {},
        {},
      )
      context.releases.markProven(`rel_newer${i}`)
    }
    await pruneImages(context, app_id, live.id)
    expect([
      context.releases.kept(app_id).length,
      context.releases.find(live.id)!.image_present,
      (await api.fakes.engine.listImages({ app: app_id })).length,
    ]).toEqual([5, true, 1])
  })
})
