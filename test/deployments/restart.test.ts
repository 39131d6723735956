import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const version = (text: string) => commitShop(api, text)
const request = async (what: string, body?: unknown) => {
  const answer = await api.as('developer').post(`/api/apps/${app_id}/${what}`, body)
  expect([200, 201]).toContain(answer.status)
  return answer.body.data
}
const app = async () => (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
const deployment = async (id: string) => (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
const serving = async (): Promise<string> =>
  (await deployment((await app()).live_deployment_id)).commit.message
const log = async (id: string): Promise<string[]> =>
  (await api.as('viewer').get(`/api/deployments/${id}/logs`)).body.data.map(
    ({ text }: { text: string }) => text,
  )

/** An app of which these versions went live one after the other. */
async function live(...versions: string[]): Promise<void> {
  for (const [index, text] of versions.entries()) {
    version(text)
    if (index === 0)
      app_id = (
        await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
      ).body.data.id
    else await request('deploy')
    await api.services.jobs.idle()
  }
}

describe('a restart', () => {
  it('that is asked for right after a deploy restarts what that deploy brought, and not what served before', async () => {
    await live('v1')
    version('v2')
    const release = api.fakes.git.hold(SHOP_URL)
    const deploy = await request('deploy')
    const restart = await request('restart')
    release()
    await api.services.jobs.idle()
    expect([(await deployment(deploy.id)).status, (await deployment(restart.id)).status]).toEqual([
      'replaced',
      'live',
    ])
    expect([(await app()).live_deployment_id, await serving()]).toEqual([restart.id, 'v2'])
    expect((await api.as('developer').post(`/api/apps/${app_id}/rollback`)).status).toBe(201)
    await api.services.jobs.idle()
    expect(await serving()).toBe('v1')
  })

  it('throws away no deployment that waits: it replaces other restarts only, and is replaced by a deployment', async () => {
    await live('v1')
    version('v2')
    const release = api.fakes.git.hold(SHOP_URL)
    await request('deploy')
    const first = await request('restart')
    const second = await request('restart')
    const desired = await request('deploy')
    const last = await request('restart')
    expect(
      await Promise.all([first, second, desired, last].map(async ({ id }) => (await deployment(id)).status)),
    ).toEqual(['superseded', 'superseded', 'queued', 'queued'])
    release()
    await api.services.jobs.idle()
    expect(await Promise.all([desired, last].map(async ({ id }) => (await deployment(id)).status))).toEqual([
      'replaced',
      'live',
    ])
    expect(await serving()).toBe('v2')
  })

  it('fails with a sentence when nothing is live any more once its turn comes', async () => {
    await live('v1')
    const release = api.fakes.git.hold(SHOP_URL)
    await request('deploy', { no_cache: true })
    const restart = await request('restart')
    api.services.apps.setLive(app_id, null, null)
    api.fakes.engine.behave(`app=${app_id}`, { build: 'fail' })
    release()
    await api.services.jobs.idle()
    expect(await deployment(restart.id)).toMatchObject({
      status: 'failed',
      error: {
        code: 'nothing_live',
        message: 'Nothing of this app is live any more, so there is nothing to restart.',
      },
    })
  })
})

it('a superseded deployment says which one took its place, in its error and in its log', async () => {
  await live('v1')
  const release = api.fakes.git.hold(SHOP_URL)
  await request('deploy', { no_cache: true })
  const replaced = await request('deploy')
  const newer = await request('deploy')
  const sentence = `Deployment #${newer.number} took the place of this one before it began.`
  expect(await deployment(replaced.id)).toMatchObject({
    status: 'superseded',
    error: { step: null, code: 'superseded', message: sentence, log: [] },
  })
  expect(await log(replaced.id)).toEqual([sentence])
  expect(api.events().find(({ type }) => type === 'deployment.superseded')!.payload).toMatchObject({
    deployment_id: replaced.id,
    superseded_by: newer.id,
  })
  release()
  await api.services.jobs.idle()
})

it('a rollback without a deployment leads to what served before the release that was live when it was asked for, whatever goes live meanwhile', async () => {
  await live('v1', 'v2')
  version('v3')
  const release = api.fakes.git.hold(SHOP_URL)
  const deploy = await request('deploy')
  const rollback = await request('rollback')
  release()
  await api.services.jobs.idle()
  expect((await deployment(deploy.id)).status).toBe('replaced')
  expect([(await app()).live_deployment_id, await serving()]).toEqual([rollback.id, 'v1'])
})
