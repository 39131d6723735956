import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDomainPlaces } from '#server/domains/places'
import { createTestApi, type TestApi } from '#test/support/api'
import { statementsDuring } from '#test/support/statements'

let api: TestApi
let app_id: string
const ids: Record<string, string> = {}
const developer = () => api.as('developer')
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  app_id = (await developer().post('/api/apps', { name: 'shop', source: 'upload' })).body.data.id
  for (const hostname of [
    'a.test.com',
    'b.test.com',
    '*.wild.com',
    'x.wild.com',
    'deep.x.wild.com',
    'other.com',
  ])
    ids[hostname] = (await developer().post('/api/domains', { app_id, hostname })).body.data.id
  ids['a.test.com/docs'] = (
    await developer().post('/api/domains', { app_id, hostname: 'a.test.com', path: '/docs' })
  ).body.data.id
})
afterAll(() => api.close())

describe('the domains that have a part in where requests for some go', () => {
  const beside = (...names: string[]) =>
    createDomainPlaces(api.kernel.db)
      .placesBeside(
        api.services.http.default_project(),
        names.map((name) => ids[name]!),
      )
      .map(({ hostname, path }) => `${hostname}${path}`)
  it('are those of the same names, and none of the others, however many there are', () => {
    expect(beside()).toEqual([])
    expect(beside('a.test.com')).toEqual(['a.test.com/', 'a.test.com/docs'])
    expect(beside('other.com', 'x.wild.com')).toEqual(['x.wild.com/', 'other.com/'])
  })
  it('are also those with a name of their own one label below a wildcard', () => {
    expect(beside('*.wild.com')).toEqual(['*.wild.com/', 'x.wild.com/'])
  })
})

describe('a redirect of a wildcard', () => {
  it('goes in a circle, unless the name that it leads to has a domain before the wildcard', async () => {
    const { status, body } = await developer().post('/api/redirects', {
      domain_id: ids['*.wild.com'],
      kind: 'exact',
      from: '/a',
      to: 'https://x.wild.com/a',
    })
    expect(status).toBe(201)
    await developer().delete(`/api/domains/${ids['x.wild.com']}`)
    const again = await developer().put(`/api/redirects/${body.data.id}`, { keep_query: true })
    expect([again.status, again.body.error.message]).toEqual([422, expect.stringMatching(/circle/)])
  })
})

describe('automatic names', () => {
  it('move below another base domain by one statement, with those of services', async () => {
    const compose =
      'services: {web: {image: "nginx:1.29", x-portreeve: {public: 80}}, api: {image: "nginx:1.29", x-portreeve: {public: 80}}}'
    const stack = (await developer().post('/api/apps', { name: 'stack', compose })).body.data.id
    api.services.domains.followServices({ ...api.services.apps.find(stack)!, id: stack }, ['api'])
    const { db } = api.kernel
    const texts = await statementsDuring(db, async () => {
      const answer = await api.as('admin').put('/api/settings/domain', { base_domain: 'apps.other.com' })
      expect(answer.status).toBe(200)
    })
    const names = db.sql(`SELECT hostname FROM domains WHERE kind = 'automatic' ORDER BY hostname`).pluck()
    expect(names.all()).toEqual(['api-stack.apps.other.com', 'shop.apps.other.com', 'stack.apps.other.com'])
    expect(texts.filter((text) => text.startsWith('UPDATE') && text.includes(' domains '))).toHaveLength(1)
    expect(texts.filter((text) => /FROM apps WHERE id/.test(text))).toEqual([])
  })
})
