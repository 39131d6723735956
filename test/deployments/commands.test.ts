import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type Caller, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { commitShop, SHOP_URL } from '#test/support/shop'

const MIB = 1024 ** 2
const LIMITS = { memory_bytes: 512 * MIB, cpus: 1 }
let api: TestApi
let running: number
let stop: AbortController

interface App {
  id: string
  project_id: string
}

beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'first')
  running = 0
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await api.close()
})

async function deployed(name: string, more: object = {}): Promise<App> {
  const body = { name, git_url: SHOP_URL, soak_seconds: 0, limits: LIMITS, ...more }
  const answer = await api.as('admin').post('/api/apps', body)
  expect(answer.status, answer.text).toBe(201)
  await api.services.jobs.idle()
  return answer.body.data
}
/** From now on commands run until they are stopped. */
const hang = () =>
  api.fakes.engine.behave(() => true, {
    run() {
      running += 1
      return { hang: true }
    },
  })
const limit = async (app: App, quotas: object) =>
  expect((await api.as('admin').put(`/api/projects/${app.project_id}`, { quotas })).status).toBe(200)
const exec = (app: App, caller: Caller = 'admin') =>
  api.as(caller).post(`/api/apps/${app.id}/exec`, { command: 'true' })
/** Begins commands that run until `stop`; answers what became of those that have not begun. */
async function begin(app: App, user_id: string, count: number): Promise<string[]> {
  const before = running
  const refused: string[] = []
  for (let n = 0; n < count; n += 1)
    void api.services.deployments.runtime
      .exec({ user_id }, app.id, { command: 'tail /dev/zero', timeout_s: 600 }, stop.signal)
      .catch((error: { code: string }) => void (stop.signal.aborted || refused.push(error.code)))
  await poll(() => running - before + refused.length === count)
  return refused
}
const lastDeployment = async ({ id }: App) =>
  (await api.as('admin').get(`/api/apps/${id}/deployments`)).body.data[0]
const refusals = (count: number) => Array<string>(count).fill('RATE_LIMITED')

describe('commands that people run', () => {
  it('are few at once of one user, of 60 that are asked for together', async () => {
    const app = await deployed('shop')
    hang()
    expect([await begin(app, 'usr_eve', 60), running]).toEqual([refusals(56), 4])
    expect([await begin(app, 'usr_ada', 1), running]).toEqual([[], 5])
  })
  it('are few at once in one project, and leave other projects alone', async () => {
    const app = await deployed('shop')
    const project_id = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
    const other = await deployed('other', { project_id })
    hang()
    for (const user of ['eve', 'eva']) expect(await begin(app, `usr_${user}`, 4)).toEqual([])
    expect(await begin(app, 'usr_ada', 1)).toEqual(['RATE_LIMITED'])
    expect(await begin(other, 'usr_ada', 1)).toEqual([])
  })
  it('are refused with what to do and when, and run again once others have ended', async () => {
    const app = await deployed('shop')
    hang()
    await begin(app, api.actor('admin').user_id, 4)
    const { status, body, headers } = await exec(app)
    expect([status, body.error.code, body.error.message, headers.get('retry-after')]).toEqual([
      429,
      'RATE_LIMITED',
      '4 commands of one user, 8 in one project and 64 on the server run at once. Wait until one has ended, then try again.',
      '5',
    ])
    stop.abort()
    api.fakes.engine.behave(() => true, { run: () => ({ exit_code: 0 }) })
    await poll(async () => (await exec(app)).status === 200)
  })
})

describe('quotas of a project', () => {
  it.each([
    ['memory_bytes', 512 * MIB],
    ['cpus', 1],
  ])('that an app fills in %s have room for one command of it at a time', async (name, most) => {
    const app = await deployed('shop')
    await limit(app, { [name]: most })
    expect((await exec(app)).status).toBe(200)
    hang()
    expect(await begin(app, 'usr_eve', 3)).toEqual(refusals(2))
    expect(running).toBe(1)
  })
  it('refuse a command that may use more than its app is counted for', async () => {
    const app = await deployed('shop')
    const worker = { command: 'work', grace_s: 1, limits: { memory_bytes: 64 * MIB } }
    const change = { processes: { web: { replicas: 0 }, worker } }
    expect((await api.as('admin').put(`/api/apps/${app.id}`, change)).status).toBe(200)
    await api.as('admin').post(`/api/apps/${app.id}/deploy`, {})
    await api.services.jobs.idle()
    await limit(app, { memory_bytes: 256 * MIB })
    const { status, body } = await exec(app)
    expect([status, body.error.code, body.error.message]).toEqual([
      409,
      'CONFLICT',
      expect.stringContaining('ask an administrator to raise the quota memory_bytes.'),
    ])
  })
  it('count a command while it runs, and no longer', async () => {
    const app = await deployed('shop')
    await limit(app, { memory_bytes: 1024 * MIB })
    hang()
    expect(await begin(app, 'usr_eve', 3)).toEqual(refusals(2))
    const { status, body } = await exec(app)
    expect([status, body.error.message]).toEqual([
      429,
      'Commands that run in the project take what its quotas have room for. Wait until one has ended, then try again.',
    ])
    const another = () => api.as('admin').post('/api/apps', { name: 'two', source: 'upload', limits: LIMITS })
    expect((await another()).status).toBe(409)
    stop.abort()
    await poll(() => api.services.deployments.runtime.shareIn(app.project_id).memory_bytes === 0)
    expect((await another()).status).toBe(201)
  })
  it('have room for the release command of an app whose instances they have room for', async () => {
    const app = await deployed('shop', { build: { release_command: 'migrate' } })
    await limit(app, { memory_bytes: 512 * MIB })
    await api.as('admin').post(`/api/apps/${app.id}/deploy`, {})
    await api.services.jobs.idle()
    expect(await lastDeployment(app)).toMatchObject({ status: 'live', number: 2 })
  })
  it('refuse the release command of an app that is counted for less, and leave what runs alone', async () => {
    const app = await deployed('shop', { build: { release_command: 'migrate' } })
    await limit(app, { memory_bytes: 512 * MIB })
    const worker = { command: 'work', limits: { memory_bytes: 512 * MIB } }
    const processes = { web: { replicas: 0 }, worker }
    const change = { limits: { memory_bytes: 64 * 1024 * MIB }, processes }
    expect((await api.as('admin').put(`/api/apps/${app.id}`, change)).status).toBe(200)
    await api.as('admin').post(`/api/apps/${app.id}/deploy`, {})
    await api.services.jobs.idle()
    expect(await lastDeployment(app)).toMatchObject({
      status: 'failed',
      number: 2,
      error: { step: 'release', message: expect.stringContaining('raise the quota memory_bytes.') },
    })
    expect((await api.as('admin').get(`/api/apps/${app.id}`)).body.data.status).toBe('running')
  })
})
