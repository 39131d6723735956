import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { makeResources } from '#test/support/resources'
import { readDefinitions } from '#test/support/routes'

const MARK = 'narrowmark'
const endpoints = (await readDefinitions()).map(({ method, ...one }) => ({
  ...one,
  method: method.toUpperCase(),
}))
const UNKNOWN = '0'.repeat(20)

let api: TestApi
/** What the project of the keys has, and what another project of the same administrator has, by noun. */
let own: Record<string, string>
let theirs: Record<string, string>
const keys: Record<'project' | 'read' | 'deploy', string> = { project: '', read: '', deploy: '' }
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const admin = api.as('admin')
  const project = async (name: string) => (await admin.post('/api/projects', { name })).body.data.id as string
  const [own_id, other_id] = [await project('Own'), await project('Other')]
  own = await makeResources(api, 'admin', { project_id: own_id, mark: 'ownmark' })
  theirs = await makeResources(api, 'admin', { project_id: other_id, mark: MARK })
  const key = async (scope: string) => {
    const made = await admin.post('/api/auth/api-keys', { name: scope, scope, project_ids: [own_id] })
    return made.body.data.key as string
  }
  Object.assign(keys, { project: await key('full'), read: await key('read'), deploy: await key('deploy') })
})
afterAll(() => api.close())

/** Every row but those that tell of requests, to see that nothing changed. */
function state(): string {
  const tables = api.kernel.db
    .sql(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
       AND name NOT IN ('audit_log', 'row_counts', 'idempotency', 'api_keys') ORDER BY name`,
    )
    .pluck()
    .all() as string[]
  return JSON.stringify(tables.map((table) => api.kernel.db.sql(`SELECT * FROM ${table}`).all()))
}
/** Endpoints whose path names one resource, each with the path for an id. */
const ABOUT_ONE = endpoints.flatMap(({ method, path, definition }) => {
  const { scope } = definition
  if (typeof scope !== 'object' || scope.field !== undefined) return []
  const { noun, param = 'id' } = scope
  const at = (id: string) =>
    path.replace(/:(\w+)/g, (_all, name: string) => (name === param ? id : `usr_${UNKNOWN}`))
  const body = method === 'GET' || definition.upload ? {} : { body: definition.example ?? {} }
  const effect = definition.effect ?? (method === 'GET' ? 'read' : 'write')
  return [{ method, noun, path, at, body, effect }]
})
const call = (key: keyof typeof keys, method: string, path: string, body: object) =>
  api.request(method, path, { ...body, headers: { 'x-api-key': keys[key] } })

describe("T30: an administrator's keys that are limited to a project", () => {
  it('reach resources of every kind that a fixture makes, cron jobs, rules, checks, schedules and redirects among them', () => {
    expect(new Set(ABOUT_ONE.map(({ noun }) => noun))).toEqual(
      new Set([...ABOUT_ONE.map(({ noun }) => noun)].filter((noun) => own[noun] && theirs[noun])),
    )
    for (const noun of ['cron_job', 'alert_rule', 'uptime_check', 'backup_schedule', 'redirect', 'webhook'])
      expect(Object.keys(theirs)).toContain(noun)
  })
  it.each(['project', 'read', 'deploy'] as const)(
    'see and change by the key %s nothing of another project by its id, and hear of it as of what does not exist',
    async (key) => {
      const before = state()
      const wrong: string[] = []
      for (const { method, noun, path, at, body } of ABOUT_ONE) {
        const foreign = await call(key, method, at(theirs[noun]!), body)
        const unknown = await call(key, method, at(theirs[noun]!.replace(/.{20}$/, UNKNOWN)), body)
        const is_hidden = [403, 404].includes(foreign.status) && foreign.status === unknown.status
        if (!is_hidden || foreign.text.includes(MARK)) wrong.push(`${method} ${path}: ${foreign.status}`)
      }
      expect(wrong).toEqual([])
      expect(state()).toBe(before)
    },
  )
  it('change nothing by a key for reading, and by one for deployments nothing but those, in their own project too', async () => {
    const before = state()
    const wrong: string[] = []
    for (const { method, noun, path, at, body, effect } of ABOUT_ONE)
      for (const key of ['read', 'deploy'] as const) {
        if (effect === 'read' || effect === key) continue
        const { status } = await call(key, method, at(own[noun]!), body)
        if (status !== 403) wrong.push(`${key} ${method} ${path}: ${status}`)
      }
    expect(wrong).toEqual([])
    expect(state()).toBe(before)
  })
  it('list by all keys what is theirs only', async () => {
    const wrong: string[] = []
    for (const { method, path } of endpoints) {
      if (method !== 'GET' || path.includes(':')) continue
      for (const key of ['project', 'read', 'deploy'] as const) {
        const { text } = await call(key, 'GET', `${path}?per_page=100`, {})
        if (text.includes(MARK)) wrong.push(`${key} ${path}`)
      }
    }
    expect(wrong).toEqual([])
  })
})
