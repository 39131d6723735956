import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AnyModule } from '#server/kernel/module'
import { MODULES } from '#server/modules'
import { type Caller, createTestApi, type TestApi } from '#test/support/api'
import { makeResources } from '#test/support/resources'
import { readDefinitions } from '#test/support/routes'

const MARK = 'tenantsecretmark'
const endpoints = (await readDefinitions()).map(({ method, ...one }) => ({
  ...one,
  method: method.toUpperCase(),
}))
/** Kinds of resources that search shows, as the modules declare them. */
const KINDS = MODULES.flatMap(({ resources }: AnyModule) => resources ?? []).flatMap(({ noun, listed }) =>
  listed === 'nowhere' ? [] : [noun],
)

let api: TestApi
let project_id: string
/** Everything that the first team has, by noun; the callers below are no members of its project. */
let theirs: Record<string, string>
const STRANGERS: Caller[] = ['outsider', 'developer', 'owner']

beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const { body } = await api.as('admin').post('/api/projects', { name: `${MARK} project` })
  project_id = body.data.id as string
  theirs = await makeResources(api, 'admin', { project_id, mark: MARK })
})
afterAll(() => api.close())

/** Every row but those that tell of requests, to see that nothing of it changed. */
function state(): string {
  const tables = api.kernel.db
    .sql(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
       AND name NOT IN ('audit_log', 'row_counts', 'idempotency') ORDER BY name`,
    )
    .pluck()
    .all() as string[]
  return JSON.stringify(tables.map((table) => api.kernel.db.sql(`SELECT * FROM ${table}`).all()))
}

describe('T4: what another team has does not exist', () => {
  it.each(STRANGERS)(
    'answers %s for every path id like an unknown one, byte for byte, and changes nothing',
    async (caller) => {
      const before = state()
      const wrong: string[] = []
      for (const { method, path, definition } of endpoints) {
        if (typeof definition.scope !== 'object' || definition.scope.field !== undefined) continue
        const { noun, param = 'id' } = definition.scope
        const fill = (id: string) =>
          path.replace(/:(\w+)/g, (_all, name: string) => (name === param ? id : 'usr_00000000000000000000'))
        const body = method === 'GET' || definition.upload ? {} : { body: definition.example ?? {} }
        const foreign = await api.request(method, fill(theirs[noun]!), { as: caller, ...body })
        const unknown = await api.request(method, fill(theirs[noun]!.replace(/.{20}$/, '0'.repeat(20))), {
          as: caller,
          ...body,
        })
        const headers = (answer: typeof foreign) => [...answer.headers.keys()].sort().join()
        if (foreign.status !== 404 || foreign.text !== unknown.text || headers(foreign) !== headers(unknown))
          wrong.push(`${method} ${path}: ${foreign.status} ${foreign.text.slice(0, 100)}`)
      }
      expect(wrong).toEqual([])
      expect(state()).toBe(before)
    },
  )
  it.each(STRANGERS)('shows %s nothing of it in any list, filter or search', async (caller) => {
    const filters = [
      '',
      `?project_id=${project_id}`,
      `?app_id=${theirs.app}`,
      `?q=${MARK}`,
      '?per_page=100',
      `?test=https://${MARK}.example.com/${MARK}`,
    ]
    let seen = 0
    for (const { path, definition, method } of endpoints) {
      if (method !== 'GET' || path.includes(':')) continue
      for (const filter of filters) {
        const answer = await api.request('GET', `${path}${filter}`, { as: caller })
        // An unknown filter is repeated by nobody; everything else must not know the mark.
        if (answer.text.includes(MARK) || Object.values(theirs).some((id) => answer.text.includes(id)))
          expect.fail(`${path}${filter} shows ${answer.text.slice(0, 200)}`)
        seen += 1
      }
      if (definition.query === undefined) continue
    }
    expect(seen).toBeGreaterThan(20)
  })
  it.each(STRANGERS)('takes no reference of %s to it in a body', async (caller) => {
    const before = state()
    for (const { method, path, definition } of endpoints) {
      const { scope } = definition
      const named = scope === 'body' ? { field: 'project_id', noun: 'project' } : scope
      if (typeof named !== 'object' || named.field === undefined) continue
      const send = (id: string) =>
        api.request(method, path, {
          as: caller,
          body: { ...(definition.example as object), [named.field]: id },
        })
      const id = theirs[named.noun]!
      const [foreign, unknown] = [await send(id), await send(id.replace(/.{20}$/, '0'.repeat(20)))]
      expect([path, foreign.status, foreign.text]).toEqual([path, 404, unknown.text])
    }
    expect(state()).toBe(before)
  })
  it('takes no app of a stranger into it, and says the same as of a project that does not exist', async () => {
    const url = 'https://git.example.com/owner/app.git'
    api.fakes.git.commit(url, 'main', { 'index.html': '<p>hello' })
    const own_app = (await api.as('owner').post('/api/apps', { name: 'own-app', git_url: url })).body.data
      .id as string
    const [deployment] = (await api.as('owner').get(`/api/apps/${own_app}/deployments`)).body.data
    expect((await api.as('owner').post(`/api/deployments/${deployment.id}/cancel`, {})).status).toBe(200)
    const before = state()
    const move = (id: string) => api.as('owner').post(`/api/apps/${own_app}/move`, { project_id: id })
    const [foreign, unknown] = [await move(project_id), await move('prj_00000000000000000000')]
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
    expect(state()).toBe(before)
  })
  it('shows it to its members, as a check of the tests above', async () => {
    const admin = api.as('admin')
    const kindsOf = (rows: { kind: string }[]) => [...new Set(rows.map(({ kind }) => kind))].sort()
    const found = await admin.get(`/api/search?q=${MARK}&per_page=100`)
    expect(kindsOf(found.body.data)).toEqual([...KINDS].sort())
    const overview = await admin.get(`/api/projects/${project_id}/resources?per_page=100`)
    expect(kindsOf(overview.body.data)).toEqual(KINDS.filter((kind) => kind !== 'project').sort())
    expect((await admin.get(`/api/apps?q=${MARK}`)).body.total).toBe(2)
  })
})
