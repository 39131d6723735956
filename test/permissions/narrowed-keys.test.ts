import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let project_id: string
let other_id: string
/** Headers of an administrator's keys. */
const keys: Record<'full' | 'project', Record<string, string>> = { full: {}, project: {} }

beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  project_id = api.services.http.default_project()
  other_id = (await api.as('admin').post('/api/projects', { name: 'Other' })).body.data.id
  const make = async (project_ids?: string[]) => {
    const made = await api.as('admin').post('/api/auth/api-keys', { name: 'key', project_ids })
    expect(made.status).toBe(201)
    return { 'x-api-key': made.body.data.key as string }
  }
  keys.full = await make()
  keys.project = await make([project_id])
})
afterAll(() => api.close())

const call = (key: keyof typeof keys, method: string, path: string, body?: unknown, headers = {}) =>
  api.request(method, path, { body, headers: { ...keys[key], ...headers } })

describe("T30: an administrator's key that is limited to a project", () => {
  it('sets no quotas, not even of its own project', async () => {
    const quotas = { apps: 1 }
    const refused = await call('project', 'PUT', `/api/projects/${project_id}`, { quotas })
    expect([refused.status, refused.body.error.message]).toEqual([
      403,
      'Only an administrator may set quotas.',
    ])
    expect((await call('full', 'PUT', `/api/projects/${project_id}`, { quotas: {} })).status).toBe(200)
  })
  it('ends no cool-down of a name', async () => {
    const app = await call('project', 'POST', '/api/apps', { name: 'shop', source: 'upload' })
    expect(app.status).toBe(201)
    const body = { app_id: app.body.data.id, hostname: 'shop.example.com', end_cool_down: true }
    expect((await call('project', 'POST', '/api/domains', body)).status).toBe(403)
    expect((await call('full', 'POST', '/api/domains', body)).status).toBe(201)
  })
  it('sees no job of the installation', async () => {
    const id = api.services.jobs.enqueue({
      kind: 'secrets.rotate',
      lane: 'x',
      subject: 'x',
      project_id: null,
      payload: {},
    } as never)
    expect((await call('project', 'GET', `/api/system/jobs/${id}`)).status).toBe(404)
  })
  it('sees nothing of another project, and changes nothing in it', async () => {
    expect((await call('project', 'GET', `/api/projects/${other_id}`)).status).toBe(404)
    expect((await call('project', 'GET', '/api/projects')).body.data).toHaveLength(1)
    const app = { name: 'theirs', source: 'upload', project_id: other_id }
    expect((await call('project', 'POST', '/api/apps', app)).status).toBe(404)
  })
  it('changes nothing of the account', async () => {
    const answers = await Promise.all([
      call('project', 'PUT', '/api/auth/me', { name: 'Somebody' }),
      call('project', 'POST', '/api/auth/2fa/setup', {}),
      call('project', 'POST', '/api/auth/api-keys', { name: 'more' }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403])
    const { permissions } = (await call('project', 'GET', '/api/auth/me')).body.data
    expect(permissions).toEqual(['account.read', 'app.deploy'])
  })
  it('is answered nothing that another credential of the same user has asked for', async () => {
    const idempotent = { 'idempotency-key': 'the-same' }
    const body = { name: 'Third' }
    const first = await call('full', 'POST', '/api/projects', body, idempotent)
    const replay = await call('project', 'POST', '/api/projects', body, idempotent)
    expect([first.status, replay.status, replay.headers.get('idempotency-replayed')]).toEqual([
      201,
      403,
      null,
    ])
  })
})
