import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { type PretendedVolumes, pretendVolumes } from '../backups/pretend-volumes.ts'

const COMPOSE = `services:
  web:
    image: shop/web:1
    healthcheck: {test: [CMD, ready], interval: 1s, timeout: 1s, retries: 1}
    depends_on: {db: {condition: service_healthy}}
  db:
    image: shop/db:1
    volumes: ["rows:/data"]
    healthcheck: {test: [CMD, ready], interval: 1s, timeout: 1s, retries: 1}
volumes: {rows: {}}`

let api: TestApi
let volumes: PretendedVolumes
let app_id: string
let backup_id: string

const idle = () => api.services.jobs.idle()
const post = async (path: string, body: object = {}) => {
  const answer = await api.as('owner').post(path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  await idle()
  return answer.body.data
}
const show = async (path: string) => (await api.as('owner').get(path)).body.data
const running = async () =>
  (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } }))
    .filter(({ state }) => state === 'running')
    .map(({ process }) => process)
    .sort()
const service = async (name: string) =>
  (await show(`/api/apps/${app_id}/services`)).find((one: { name: string }) => one.name === name)
const rows = async () => (await show('/api/volumes'))[0].id as string
const restore = async () => {
  const { job_id } = await post(`/api/backups/${backup_id}/restore`, { mode: 'in_place' })
  return show(`/api/system/jobs/${job_id}`)
}

beforeEach(async () => {
  api = await createTestApi()
  volumes = pretendVolumes(api)
  for (const image of ['shop/web:1', 'shop/db:1']) api.fakes.engine.addImage(image)
  const body = { name: 'shop', compose: COMPOSE, soak_seconds: 0, health_check: { grace_s: 1 } }
  app_id = (await post('/api/apps', body)).id
  await post(`/api/apps/${app_id}/deploy`)
  volumes.held.set(api.services.volumes.dataOf(await rows()), 'FILES')
  backup_id = (await post('/api/backups', { target: 'app', target_id: app_id })).id
})
afterEach(() => api.close())

/** Holds the next call that makes instances of a process, as a slow engine does, until it is let go. */
function holdMaking(process: string) {
  const { ensureRelease } = api.fakes.engine
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  api.fakes.engine.ensureRelease = async (spec, signal) => {
    if (spec.process !== process) return ensureRelease(spec, signal)
    api.fakes.engine.ensureRelease = ensureRelease
    held.resolve()
    await promise
    return ensureRelease(spec, signal)
  }
  return { letGo, held: held.promise }
}
const instanceOf = async (process: string) =>
  (await api.fakes.engine.instances({})).find((one) => one.process === process)!
const dataOfInstances = () =>
  api.fakes.engine.calls
    .filter(({ method }) => method === 'ensureRelease')
    .map(({ args }) => args[0] as { process?: string; mounts?: { volume_id?: string }[] })
    .filter(({ process }) => process === 'db')
    .map(({ mounts }) => mounts?.[0]?.volume_id)

describe('a restore of a compose app in place', () => {
  test('has ended only once its services run on the data from the backup', async () => {
    expect(await running()).toEqual(['db', 'web'])
    expect((await restore()).status).toBe('succeeded')
    expect(await running()).toEqual(['db', 'web'])
    expect(dataOfInstances().at(-1)).toBe(api.services.volumes.dataOf(await rows()))
  })
  test('starts a service only once those that it needs are healthy, however long that takes', async () => {
    const seen: string[][] = []
    let asked = 0
    api.fakes.engine.behave('shop/db:1', {
      async exec() {
        asked += 1
        seen.push(await running())
        return { exit_code: asked < 3 ? 1 : 0 }
      },
    })
    expect((await restore()).status).toBe('succeeded')
    expect(seen.slice(0, 3)).toEqual([['db'], ['db'], ['db']])
    expect(await running()).toEqual(['db', 'web'])
  })
  test('starts a service again that ends while what it needs comes up', async () => {
    api.fakes.engine.behave('shop/web:1', { start: 'exits' })
    const { logs } = api.fakes.engine
    api.fakes.engine.logs = (...given) => {
      api.fakes.engine.behave('shop/web:1', {})
      return logs(...given)
    }
    const { status, error } = await restore()
    expect([status, error]).toEqual(['succeeded', null])
    expect(await running()).toEqual(['db', 'web'])
  })
  test('leaves a service stopped that somebody has stopped', async () => {
    await post(`/api/services/${(await service('web')).id}/stop`)
    expect(await running()).toEqual(['db'])
    expect((await restore()).status).toBe('succeeded')
    expect(await running()).toEqual(['db'])
  })
  test('of data that its services cannot start with goes back to those from before', async () => {
    const before = api.services.volumes.dataOf(await rows())
    const { ensureRelease } = api.fakes.engine
    api.fakes.engine.ensureRelease = async (spec, signal) => {
      const [mount] = spec.process === 'db' ? (spec.mounts ?? []) : []
      const is_new = mount?.kind === 'volume' && mount.volume_id !== before
      const exec = () => {
        api.fakes.clock.advance(1000)
        return { exit_code: is_new ? 1 : 0 }
      }
      if (mount) api.fakes.engine.behave('shop/db:1', { exec })
      return ensureRelease(spec, signal)
    }
    const { status, error } = await restore()
    expect([status, error.message]).toEqual([
      'failed',
      expect.stringContaining('The service db did not become'),
    ])
    expect(api.services.volumes.dataOf(await rows())).toBe(before)
    expect([await running(), dataOfInstances().at(-1)]).toEqual([['db', 'web'], before])
  })
  test('is not undone by a reconciler that was about to bring back what had crashed before', async () => {
    const { reconciler } = api.services.deployments
    api.fakes.engine.vanish((await instanceOf('db')).id)
    const { held, letGo } = holdMaking('db')
    const pass = reconciler.reconcile()
    await held
    const answer = await api.as('owner').post(`/api/backups/${backup_id}/restore`, { mode: 'in_place' })
    await expect
      .poll(async () => (await show(`/api/system/jobs/${answer.body.data.job_id}`)).steps[2].status)
      .toBe('running')
    letGo()
    await pass
    await idle()
    expect((await show(`/api/system/jobs/${answer.body.data.job_id}`)).status).toBe('succeeded')
    expect(dataOfInstances().at(-1)).toBe(api.services.volumes.dataOf(await rows()))
  })
})

describe('apps that share a volume', () => {
  let shared: string
  let one: string
  let two: string
  let made: string
  const create = async (name: string) =>
    (await post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0 })).id as string
  const mount = (id: string) => post(`/api/apps/${id}/mounts`, { path: '/data', volume_id: shared })
  beforeEach(async () => {
    commitShop(api, 'one')
    shared = (await post('/api/volumes', { name: 'shared', access: 'shared' })).id
    one = await create('one')
    two = await create('two')
    for (const id of [one, two]) {
      await mount(id)
      await post(`/api/apps/${id}/deploy`)
    }
    made = (await post('/api/backups', { target: 'volume', target_id: shared })).id
  })
  /** Begins a piece of work and holds it at a call of its own, until `go` is called. */
  const hold = async (at: 'onRead' | 'onWrite', begin: () => Promise<unknown>) => {
    const { promise, resolve: go } = Promise.withResolvers<void>()
    const begun = new Promise<void>((resolve) => {
      volumes[at] = () => {
        resolve()
        return promise
      }
    })
    await begin()
    await begun
    return go
  }
  const holdRestore = () =>
    hold('onWrite', () => api.as('owner').post(`/api/backups/${made}/restore`, { mode: 'in_place' }))
  const deploy = async (id: string) => (await api.as('owner').post(`/api/apps/${id}/deploy`)).body.data.id
  const statusOf = async (id: string) => (await show(`/api/deployments/${id}`)).status
  const mounted = (id: string) =>
    api.fakes.engine.calls
      .filter(({ method }) => method === 'ensureRelease')
      .map(({ args }) => args[0] as { owner: { id: string }; mounts?: { volume_id?: string }[] })
      .findLast(({ owner }) => owner.id === id)?.mounts?.[0]?.volume_id

  test('deploy after its restore, on the restored data, however long that takes', async () => {
    const before = api.services.volumes.dataOf(shared)
    const go = await holdRestore()
    const asked = await Promise.all([deploy(one), deploy(two)])
    expect(await Promise.all(asked.map(statusOf))).toEqual(['queued', 'queued'])
    await api.services.deployments.reconciler.reconcile()
    go()
    await idle()
    expect(await Promise.all(asked.map(statusOf))).toEqual(['live', 'live'])
    const after = api.services.volumes.dataOf(shared)
    expect(after).not.toBe(before)
    expect([mounted(one), mounted(two)]).toEqual([after, after])
    expect(api.fakes.engine.volumes()).not.toContain(before)
  })
  test('are both left to a restore of one of them as a whole', async () => {
    made = (await post('/api/backups', { target: 'app', target_id: one })).id
    const go = await holdRestore()
    const asked = await deploy(two)
    expect(await statusOf(asked)).toBe('queued')
    go()
    await idle()
    expect([await statusOf(asked), mounted(two)]).toEqual(['live', api.services.volumes.dataOf(shared)])
  })
  test('wait for one another: an app that mounts it while it is restored starts on the restored data', async () => {
    const three = await create('three')
    const go = await holdRestore()
    await api.as('owner').post(`/api/apps/${three}/mounts`, { path: '/data', volume_id: shared })
    const asked = await deploy(three)
    const log = async () => JSON.stringify(await show(`/api/deployments/${asked}/logs`))
    await expect.poll(log, { timeout: 20_000 }).toContain('are being restored')
    expect(mounted(three)).toBeUndefined()
    go()
    await idle()
    expect([await statusOf(asked), mounted(three)]).toEqual(['live', api.services.volumes.dataOf(shared)])
  })
  test('never wait for restores that wait for them, though each is about to mount what the other has', async () => {
    const own = new Map<string, string>()
    const copies: string[] = []
    for (const id of [one, two]) {
      const volume = (await post('/api/volumes', { name: `of-${id.slice(4, 12)}`, access: 'shared' })).id
      await post(`/api/apps/${id}/mounts`, { path: '/own', volume_id: volume })
      await post(`/api/apps/${id}/deploy`)
      own.set(id, volume)
      copies.push((await post('/api/backups', { target: 'volume', target_id: volume })).id)
    }
    await post(`/api/apps/${one}/mounts`, { path: '/other', volume_id: own.get(two) })
    await post(`/api/apps/${two}/mounts`, { path: '/other', volume_id: own.get(one) })
    commitShop(api, 'two')
    const { promise: open, resolve: go } = Promise.withResolvers<void>()
    const { buildImage } = api.fakes.engine
    api.fakes.engine.buildImage = async (...asked) => {
      await open
      return buildImage(...asked)
    }
    const asked = await Promise.all([deploy(one), deploy(two)])
    await expect.poll(() => Promise.all(asked.map(statusOf))).toEqual(['building', 'building'])
    const restores = await Promise.all(
      copies.map(async (id) => {
        const answer = await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'in_place' })
        return answer.body.data.job_id as string
      }),
    )
    go()
    await idle()
    expect(await Promise.all(asked.map(statusOf))).toEqual(['live', 'live'])
    for (const id of restores) expect((await show(`/api/system/jobs/${id}`)).status).toBe('succeeded')
    for (const id of [one, two]) {
      const { mounts } = api.fakes.engine.calls
        .filter(({ method }) => method === 'ensureRelease')
        .map(
          ({ args }) => args[0] as { owner: { id: string }; mounts: { path: string; volume_id: string }[] },
        )
        .findLast(({ owner }) => owner.id === id)!
      const other = own.get(id === one ? two : one)!
      // On what was restored, not on what was there before.
      expect(mounts.find(({ path }) => path === '/other')?.volume_id).toBe(api.services.volumes.dataOf(other))
    }
  })
  test('stand still together for its backup: none of them is deployed meanwhile', async () => {
    const target = { target: 'volume', target_id: shared, pause_app: true }
    const go = await hold('onRead', () => api.as('owner').post('/api/backups', target))
    const asked = await Promise.all([deploy(one), deploy(two)])
    expect(await Promise.all(asked.map(statusOf))).toEqual(['queued', 'queued'])
    go()
    await idle()
    expect(await Promise.all(asked.map(statusOf))).toEqual(['live', 'live'])
  })
})

test('a compose app starts in the order that its file asks for after it was stopped', async () => {
  await post(`/api/apps/${app_id}/stop`)
  const seen: string[][] = []
  api.fakes.engine.behave('shop/db:1', {
    async exec() {
      seen.push(await running())
      return { exit_code: seen.length < 3 ? 1 : 0 }
    },
  })
  await post(`/api/apps/${app_id}/start`)
  expect(seen.slice(0, 3)).toEqual([['db'], ['db'], ['db']])
  expect([(await show(`/api/apps/${app_id}`)).status, await running()]).toEqual(['running', ['db', 'web']])
})
