import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRollbackTarget } from '#server/deployments/rollback'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const version = (text: string) => commitShop(api, text)
/** Asks for something of the app, waits for its end, and tells the deployment. */
const request = async (what: string, body?: unknown): Promise<string> => {
  const answer = await api.as('developer').post(`/api/apps/${app_id}/${what}`, body)
  expect([200, 201]).toContain(answer.status)
  await api.services.jobs.idle()
  return answer.body.data.id
}
const rollBack = async (body?: unknown) => api.as('developer').post(`/api/apps/${app_id}/rollback`, body)
const app = async () => (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
const deployment = async (id: string) => (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
/** What serves now, by the message of its commit. */
const serving = async (): Promise<string> =>
  (await deployment((await app()).live_deployment_id)).commit.message

/** An app of which these versions went live one after the other; answers their deployments. */
async function live(...versions: string[]): Promise<string[]> {
  const [first, ...rest] = versions
  version(first!)
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
  const ids = [(await app()).live_deployment_id as string]
  for (const text of rest) {
    version(text)
    ids.push(await request('deploy'))
  }
  return ids
}

describe('a rollback without a deployment', () => {
  it('leads to the version before the one that was restarted', async () => {
    const [first] = await live('v1', 'v2')
    await request('restart')
    await request('restart')
    expect((await deployment(await request('rollback'))).rolled_back_to).toBe(first)
    expect(await serving()).toBe('v1')
  })

  it('leads one version further back each time, never to the one that was left', async () => {
    await live('v1', 'v2', 'v3')
    await request('rollback')
    expect(await serving()).toBe('v2')
    await request('restart')
    await request('rollback')
    expect(await serving()).toBe('v1')
    const answer = await rollBack()
    expect(answer.status).toBe(409)
    expect(answer.body.error.message).toBe('There is no earlier release to roll back to.')
  })

  it('leads to what served before a deployment that followed a rollback', async () => {
    const [first] = await live('v1', 'bad')
    await request('rollback')
    version('v3')
    await request('deploy')
    expect((await deployment(await request('rollback'))).rolled_back_to).toBe(first)
    expect(await serving()).toBe('v1')
  })

  it('passes over a deployment that changed nothing', async () => {
    await live('v1', 'v2')
    await request('deploy')
    await request('rollback')
    expect(await serving()).toBe('v1')
  })

  it('brings back how the app ran when only its configuration has changed', async () => {
    const [first] = await live('v1')
    await api.as('developer').put(`/api/apps/${app_id}`, { port: 4000 })
    await request('deploy')
    expect((await deployment(await request('rollback'))).rolled_back_to).toBe(first)
  })

  it('looks for it in pieces, with others served in between: releases may be large', async () => {
    const [first] = await live('v1', 'v2')
    for (let i = 0; i < 3; i += 1) await request('deploy')
    const { deployments, releases } = api.services.deployments.context
    let rests = 0
    const rest = async () => void (rests += 1)
    const target = createRollbackTarget(deployments, releases)
    const live_release_id = releases.ofDeployment((await app()).live_deployment_id)!.id
    const found = await target({ id: app_id, live_release_id }, undefined, { rest, pause: rest })
    expect([found.deployment_id, rests]).toEqual([first, 4])
  })

  it('finds the image of the version before, however often the live one was restarted', async () => {
    await live('v1', 'v2')
    for (let i = 0; i < 6; i += 1) await request('restart')
    await request('rollback')
    expect(await serving()).toBe('v1')
  })
})

/** Lets no instance start until the answer is called. */
function holdStarts(): () => void {
  const gate = Promise.withResolvers<void>()
  const { ensureRelease } = api.fakes.engine
  api.fakes.engine.ensureRelease = async (...given) => {
    await gate.promise
    return ensureRelease(...given)
  }
  return gate.resolve
}

describe('automatic deployments', () => {
  it('go on when a newer deployment replaces the rollback before it began', async () => {
    await live('v1', 'v2')
    version('v3')
    const release = api.fakes.git.hold(SHOP_URL)
    await api.as('developer').post(`/api/apps/${app_id}/deploy`)
    const replaced = (await rollBack()).body.data.id
    expect(await app()).toMatchObject({ auto_deploy: true })
    await api.as('developer').post(`/api/apps/${app_id}/deploy`)
    release()
    await api.services.jobs.idle()
    expect(await deployment(replaced)).toMatchObject({ status: 'superseded' })
    expect(await app()).toMatchObject({ auto_deploy: true })
    expect(await serving()).toBe('v3')
  })

  describe.each([
    ['while it is queued', true],
    ['while it is made', false],
  ])('and a rollback, %s', (_when, is_queued) => {
    it('gives way to no push, hook, API key, scaling, change of the configuration or restart: each is refused with 409, and the rollback goes live', async () => {
      await live('v1', 'v2')
      version('v3')
      const release = holdStarts()
      // Takes the lane of the app, so that the rollback has to wait.
      if (is_queued) await api.as('developer').post(`/api/apps/${app_id}/deploy`)
      const rollback = (await rollBack()).body.data.id
      await expect
        .poll(async () => (await deployment(rollback)).status)
        .toBe(is_queued ? 'queued' : 'releasing')
      const before = api.services.events.latest()
      for (const trigger of ['push', 'hook', 'scale', 'config'] as const) {
        const row = { ...api.services.apps.find(app_id)!, branch: 'main' }
        expect(() =>
          api.kernel.db.tx(() => api.services.deployments.enqueue(row, trigger, {}, api.actor('developer'))),
        ).toThrow('is being rolled back')
      }
      const key = await api.as('deploy_key').post(`/api/apps/${app_id}/deploy`)
      const restart = await api.as('developer').post(`/api/apps/${app_id}/restart`)
      expect([key.status, key.body.error.message, restart.status]).toEqual([
        409,
        'The app is being rolled back. Wait until the rollback is live, or cancel it first.',
        409,
      ])
      expect(
        api
          .events(before)
          .filter(({ type }) => type === 'deployment.queued' || type === 'deployment.superseded'),
      ).toEqual([])
      release()
      await api.services.jobs.idle()
      expect(await deployment(rollback)).toMatchObject({ status: 'live' })
      expect(await serving()).toBe('v1')
      expect((await api.as('deploy_key').post(`/api/apps/${app_id}/deploy`)).status).toBe(201)
    })
  })

  it.each([[true], [false]])(
    'are what they were (%s) when a rollback goes live and then dies in its soak',
    async (auto_deploy) => {
      await live('v1', 'v2')
      await api.as('developer').put(`/api/apps/${app_id}`, { soak_seconds: 30, auto_deploy })
      api.fakes.engine.behave(`app=${app_id}`, { dies_after_ms: 700 })
      const rollback = (await rollBack()).body.data.id
      await expect.poll(async () => (await deployment(rollback)).status).toBe('live')
      expect(await app()).toMatchObject({ auto_deploy: false })
      await api.services.jobs.idle()
      expect(await deployment(rollback)).toMatchObject({ status: 'failed' })
      expect([await serving(), (await app()).auto_deploy]).toEqual(['v2', auto_deploy])
    },
  )

  it('are what they were when a rollback is cancelled in its soak', async () => {
    await live('v1', 'v2')
    await api.as('developer').put(`/api/apps/${app_id}`, { soak_seconds: 300 })
    const rollback = (await rollBack()).body.data.id
    await expect.poll(async () => (await app()).auto_deploy).toBe(false)
    await api.as('developer').post(`/api/deployments/${rollback}/cancel`)
    await api.services.jobs.idle()
    expect(await app()).toMatchObject({ auto_deploy: true })
  })

  it('go on after a rollback that did not get as far as traffic', async () => {
    await live('v1', 'v2')
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    expect(await deployment(await request('rollback'))).toMatchObject({ status: 'failed' })
    expect(await app()).toMatchObject({ auto_deploy: true })
  })

  it('pause once a rollback is live, and not for a restart', async () => {
    await live('v1', 'v2')
    await request('restart')
    expect(await app()).toMatchObject({ auto_deploy: true })
    await request('rollback')
    expect(await app()).toMatchObject({ auto_deploy: false })
  })
})

describe('a rollback to a deployment', () => {
  it('leads there, also to a newer one', async () => {
    const [first, , third] = await live('v1', 'v2', 'v3')
    await request('rollback', { deployment_id: first })
    expect(await serving()).toBe('v1')
    expect((await deployment(await request('rollback', { deployment_id: third }))).rolled_back_to).toBe(third)
    expect(await serving()).toBe('v3')
    await request('rollback')
    expect(await serving()).toBe('v2')
  })

  it('is refused while the deployment has not proven itself', async () => {
    await live('v1')
    await api.as('developer').put(`/api/apps/${app_id}`, { soak_seconds: 300 })
    version('v2')
    const soaking = (await api.as('developer').post(`/api/apps/${app_id}/deploy`)).body.data.id
    await expect.poll(async () => (await deployment(soaking)).status).toBe('live')
    const answer = await rollBack({ deployment_id: soaking })
    expect(answer.status).toBe(409)
    expect(answer.body.error.message).toContain('was never live')
    await api.as('developer').post(`/api/deployments/${soaking}/cancel`)
    await api.services.jobs.idle()
  })

  it('is refused for one of another app, whose code and secrets would run here', async () => {
    const [first] = await live('v1')
    const other = { name: 'other', git_url: SHOP_URL, soak_seconds: 0 }
    app_id = (await api.as('developer').post('/api/apps', other)).body.data.id
    await api.services.jobs.idle()
    const answer = await rollBack({ deployment_id: first })
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, 'deployment_id'])
  })

  it('is refused for one that failed', async () => {
    await live('v1')
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    version('broken')
    const failed = await request('deploy')
    expect((await rollBack({ deployment_id: failed })).status).toBe(409)
  })
})
