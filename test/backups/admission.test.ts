import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '#server/backups/admission'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { type S3Server, startS3Server } from '#test/support/s3-server'
import { commitShop, SHOP_URL } from '#test/support/shop'

const MIB = 1024 ** 2
let s3: S3Server
let api: TestApi
let app_id: string
let backup_id: string

const post = async (path: string, body: object) => {
  const answer = await api.as('admin').post(path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  await api.services.jobs.idle()
  return answer.body.data.id as string
}
const restore = (body: object) => api.as('owner').post(`/api/backups/${backup_id}/restore`, body)
const isRead = () => s3.requests.some((request) => /^GET .*\.zst/.test(request))

/** A restore in place that was admitted without a look at its archive; answers what lets its job go on. */
async function beginUnread(): Promise<() => void> {
  const deadline = new AbortController()
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((duration_ms) =>
    duration_ms === PATIENCE_MS ? deadline.signal : timeout(duration_ms),
  )
  const speak = s3.silence((method) => method === 'GET')
  const answering = restore({ mode: 'in_place' })
  await poll(isRead)
  deadline.abort(new DOMException('Too late.', 'TimeoutError'))
  expect((await answering).status).toBe(201)
  return speak
}

beforeEach(async () => {
  s3 = await startS3Server()
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
  const { endpoint, bucket, access_key_id, secret_access_key } = s3
  await post('/api/storage-providers', {
    ...{ name: 'Bucket', kind: 's3', is_default: true },
    config: { endpoint, bucket, access_key_id, secret_access_key },
  })
  commitShop(api, 'one')
  app_id = await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  backup_id = await post('/api/backups', { target: 'app', target_id: app_id })
  s3.requests.length = 0
})
afterEach(async () => {
  vi.restoreAllMocks()
  await api.close()
  await s3.close()
})

describe('a restore of an app whose destination answers nothing', () => {
  it('is begun once the request has waited long enough, and its job waits for the rest', async () => {
    const speak = await beginUnread()
    speak()
    await api.services.jobs.idle()
    expect(api.events().map(({ type }) => type)).toContain('backup.restore_succeeded')
  })
  it('brings back what fits, where the app has grown too large for its project meanwhile', async () => {
    const [app, project] = [`/api/apps/${app_id}`, `/api/projects/${api.services.http.default_project()}`]
    const limit = (memory_bytes: number) => api.as('owner').put(app, { limits: { memory_bytes } })
    await limit(1024 * MIB)
    backup_id = await post('/api/backups', { target: 'app', target_id: app_id })
    s3.requests.length = 0
    await limit(512 * MIB)
    await post(`${app}/env`, { key: 'COLOUR', value: 'blue' })
    await api.as('admin').put(project, { quotas: { memory_bytes: 512 * MIB } })
    const speak = await beginUnread()
    speak()
    await api.services.jobs.idle()
    const told = api.events().find(({ type }) => type === 'backup.restore_succeeded')
    expect(told?.payload.left_out).toEqual([
      expect.stringMatching(/^The configuration stays as it is: .* may use 536870912 bytes of memory/),
    ])
    expect((await api.as('owner').get(app)).body.data.limits.memory_bytes).toBe(512 * MIB)
    expect((await api.as('owner').get(`${app}/env`)).body.data).toEqual([])
  })
  it.each<[string, object, number, string]>([
    ['name is taken', { mode: 'new', name: 'shop' }, 409, 'An app named shop exists already.'],
    ['name is missing', { mode: 'new' }, 422, '«shop» is there already'],
    ['name is none', { mode: 'new', name: 'Shop!' }, 422, ''],
    ['project is full', { mode: 'new', name: 'copy' }, 409, 'The project may have 1 app at most.'],
  ])('is refused without a look at the archive where its %s', async (_, body, status, why) => {
    const project = `/api/projects/${api.services.http.default_project()}`
    await api.as('admin').put(project, { quotas: { apps: 1 } })
    s3.silence((method) => method === 'GET')
    const answer = await restore(body)
    expect([answer.status, JSON.stringify(answer.body.error)]).toEqual([status, expect.stringContaining(why)])
    expect(isRead()).toBe(false)
  })
  it('in the place of an app that is gone is refused without a look at the archive', async () => {
    await api.as('owner').delete(`/api/apps/${app_id}?skip_backup=true`)
    await api.services.jobs.idle()
    s3.silence((method) => method === 'GET')
    const { status, body } = await restore({ mode: 'in_place' })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('The app is gone.')])
    expect(isRead()).toBe(false)
  })
})
