import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MASK } from '#server/kernel/schemas'
import { createPreviewWorld, FORK_URL } from './harness.ts'

const CANARY = 'canary-of-a-preview'
type World = Awaited<ReturnType<typeof createPreviewWorld>>
let world: World
const developer = () => world.api.as('developer')
const change = (body: object) => developer().put(`${world.path}/settings`, body)
const shown = async () => (await world.api.as('viewer').get(`${world.path}/settings`)).body.data.env
const variable = (key: string) => `/api/apps/${world.app_id}/env/${key}`
const toldToEngine = () => JSON.stringify(world.api.fakes.engine.calls)

beforeEach(async () => {
  world = await createPreviewWorld()
  const added = { key: 'LICENSE', value: 'value-of-the-app', secret: true }
  expect((await developer().post(`/api/apps/${world.app_id}/env`, added)).status).toBe(201)
  expect((await change({ env: { LICENSE: CANARY, APP_ENV: 'preview' } })).status).toBe(200)
})
afterEach(() => world.close())

describe('what previews get in the place of a secret variable of the app', () => {
  it('is shown to nobody, whatever the variable is called', async () => {
    expect(await shown()).toEqual({ LICENSE: MASK, APP_ENV: 'preview' })
  })
  it('is not given to forks that are deployed without secrets', async () => {
    await change({ forks: 'without_secrets' })
    const sha = world.commit('first', 'feature', FORK_URL)
    await world.pullRequest('opened', { sha, fork: FORK_URL })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', has_secrets: false })
    expect(toldToEngine()).toContain('APP_ENV')
    expect(toldToEngine()).not.toContain(CANARY)
  })
  it('stays a secret when the app has that variable no more, or as a plain one, and when it is sent as its mask', async () => {
    await developer().put(variable('LICENSE'), { value: 'of the app', secret: false })
    expect(await shown()).toMatchObject({ LICENSE: MASK })
    await change({ env: { LICENSE: MASK } })
    expect(await shown()).toEqual({ LICENSE: MASK })
    await developer().delete(variable('LICENSE'))
    expect(await shown()).toEqual({ LICENSE: MASK })
  })
  it('is plain again for who sends it anew once the app says that it is no secret', async () => {
    await developer().put(variable('LICENSE'), { value: 'of the app', secret: false })
    await change({ env: { LICENSE: 'sent anew' } })
    expect(await shown()).toEqual({ LICENSE: 'sent anew' })
  })
  it('becomes a secret with the variable of the app', async () => {
    const later = { key: 'REGION', value: 'west', secret: false }
    await developer().post(`/api/apps/${world.app_id}/env`, later)
    await change({ env: { REGION: 'east' } })
    expect(await shown()).toEqual({ REGION: 'east' })
    await developer().put(variable('REGION'), { value: 'west', secret: true })
    expect(await shown()).toEqual({ REGION: MASK })
  })
  it('is read from settings that were stored before it was told apart', async () => {
    const { secrets, db } = world.api.kernel
    const bound = `preview_settings/env/${world.app_id}`
    const env = secrets.seal(JSON.stringify({ LICENSE: CANARY, APP_ENV: 'old' }), bound)
    db.sql('UPDATE preview_settings SET env = ?').run(env)
    expect(await shown()).toEqual({ LICENSE: MASK, APP_ENV: 'old' })
  })
})
