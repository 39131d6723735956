import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EndpointHandler } from '#server/http/endpoint'
import { type Caller, createTestApi, type TestApi } from '#test/support/api'
import { readEndpoints } from '#test/support/routes'

const MARK = 'tenantsecretmark'
const endpoints: { method: string; path: string; definition: EndpointHandler['definition'] }[] = []
for (const { method, path, load } of readEndpoints())
  endpoints.push({
    method: method.toUpperCase(),
    path,
    definition: (await load()).default.definition,
  })

let api: TestApi
let project_id: string
/** Everything that the first team has, by noun; the callers below are no members of its project. */
const theirs: Record<string, string> = {}
const STRANGERS: Caller[] = ['outsider', 'developer', 'owner']

beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const admin = api.as('admin')
  project_id = theirs.project = (await admin.post('/api/projects', { name: `${MARK} project` })).body.data
    .id as string
  const url = `https://git.example.com/${MARK}/app.git`
  api.fakes.git.commit(url, 'main', { 'index.html': '<p>hello' })
  theirs.app = (await admin.post('/api/apps', { name: `${MARK}-app`, git_url: url, project_id })).body.data
    .id as string
  theirs.deployment = (await admin.get(`/api/apps/${theirs.app}/deployments`)).body.data[0].id as string
  theirs.domain = (await admin.post('/api/domains', { app_id: theirs.app, hostname: `${MARK}.example.com` }))
    .body.data.id as string
  theirs.certificate = (
    await admin.post('/api/certificates/csr', { names: [`${MARK}.example.com`], project_id })
  ).body.data.id as string
  theirs.redirect = (
    await admin.post('/api/redirects', { domain_id: theirs.domain, from: `/${MARK}`, to: '/new' })
  ).body.data.id as string
  const variable = { key: `${MARK}_key`, value: MARK }
  await admin.post(`/api/apps/${theirs.app}/env`, variable)
  await admin.put(`/api/projects/${project_id}/env`, { variables: [variable] })
  theirs.ssh_key = (await admin.post('/api/ssh-keys/generate', { name: `${MARK} key`, project_id })).body.data
    .id as string
  theirs.git_credential = (
    await admin.post('/api/git-credentials', {
      name: `${MARK} token`,
      host: `${MARK}.example.com`,
      token: 'the token of the first team',
      project_id,
    })
  ).body.data.id as string
  const hook = { kind: 'deployment', app_id: theirs.app, name: `${MARK} hook` }
  theirs.webhook = (await admin.post('/api/webhooks', hook)).body.data.id as string
}, 60_000)
afterAll(() => api.close())

/** Rows that belong to the first team's project, to see that nothing of it changed. */
function state(): string {
  const tables = [
    'projects',
    'project_members',
    'apps',
    'deployments',
    'domains',
    'redirects',
    'ssh_keys',
    'git_credentials',
    'certificates',
    'variables',
    'webhooks',
    'jobs',
  ]
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
    60_000,
  )
  it.each(STRANGERS)(
    'shows %s nothing of it in any list, filter or search',
    async (caller) => {
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
    },
    60_000,
  )
  it.each(STRANGERS)('takes no reference of %s to it in a body', async (caller) => {
    const before = state()
    for (const { method, path, definition } of endpoints) {
      const { scope } = definition
      const named =
        scope === 'body'
          ? { field: 'project_id', noun: 'project' }
          : typeof scope === 'object' && scope.field !== undefined
            ? scope
            : undefined
      if (!named) continue
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
    expect(
      (await admin.get(`/api/search?q=${MARK}`)).body.data.map(({ kind }: { kind: string }) => kind).sort(),
    ).toEqual([
      'app',
      'certificate',
      'domain',
      'domain',
      'git_credential',
      'project',
      'redirect',
      'ssh_key',
      'webhook',
    ])
    expect((await admin.get(`/api/projects/${project_id}/resources`)).body.total).toBe(8)
    expect((await admin.get(`/api/apps?q=${MARK}`)).body.total).toBe(1)
  })
})
