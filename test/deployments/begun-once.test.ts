import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EngineError } from '#server/platform/engine/engine'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let runs: string[]
/** What the next command meets. */
let meets: (() => { hang?: boolean } | undefined) | undefined
beforeEach(async () => {
  api = await createTestApi()
  runs = []
  meets = undefined
  api.fakes.engine.behave(() => true, {
    run({ purpose }) {
      runs.push(purpose)
      return meets?.() ?? {}
    },
  })
})
afterEach(() => api.close())

const idle = () => api.services.jobs.idle()
const post = async (path: string, body: object = {}) => (await api.as('developer').post(path, body)).body.data
const show = async (path: string) => (await api.as('developer').get(path)).body.data

describe('a release command', () => {
  const build = { release_command: 'npm run migrate' }
  const made = async () => {
    commitShop(api, 'one')
    return (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0, build })).id as string
  }
  const newest = async (app_id: string) => {
    const [{ id }] = await show(`/api/apps/${app_id}/deployments`)
    return show(`/api/deployments/${id}`)
  }

  test('that ran when the engine went down is not begun again once that is back', async () => {
    meets = () => {
      meets = undefined
      throw new EngineError('unavailable', 'The container engine does not answer.')
    }
    const app_id = await made()
    await idle()
    const { status, error } = await newest(app_id)
    expect([runs, status, error.step, error.code]).toEqual([
      ['release'],
      'failed',
      'release',
      'engine_unavailable',
    ])
    await post(`/api/apps/${app_id}/deploy`)
    await idle()
    expect([runs, (await newest(app_id)).status]).toEqual([['release', 'release'], 'live'])
  })
  test('that ran when Portreeve ended is not begun again by the next start, and says what to do', async () => {
    meets = () => ({ hang: true })
    const app_id = await made()
    await expect.poll(() => runs).toEqual(['release'])
    await api.services.jobs.stop()
    meets = undefined
    api.services.jobs.start()
    await idle()
    const { status, error } = await newest(app_id)
    expect([runs, status, error.code, error.message]).toEqual([
      ['release'],
      'failed',
      'interrupted',
      expect.stringContaining('Portreeve ended while the release command ran'),
    ])
  })
})

test('a service that runs to its end does so once, however often the start of the others is tried', async () => {
  for (const image of ['shop/web:1', 'shop/job:1']) api.fakes.engine.addImage(image)
  const health = 'healthcheck: {test: [CMD, ready], interval: 1s}'
  const compose = `services:
  job: {image: shop/job:1}
  web: {image: shop/web:1, ${health}, depends_on: {job: {condition: service_completed_successfully}}}`
  api.fakes.engine.failNext('ensureRelease')
  const { id } = await post('/api/apps', { name: 'shop', compose, soak_seconds: 0 })
  await idle()
  const again = api.fakes.engine.calls.filter(({ method }) => method === 'ensureRelease').length
  expect([runs, again, (await show(`/api/apps/${id}`)).status]).toEqual([['service-job'], 2, 'running'])
})
