import { get } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL_OF_GIT = 'https://git.example.com/team/shop.git'
let api: TestApi
let app_id: string
let domain_id: string
let addresses: string[]
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net' } })
  api.fakes.git.commit(URL_OF_GIT, 'main', {
    'package.json': '{"scripts":{"start":"node server.js"}}',
    'server.js': '',
  })
  app_id = (await api.as('admin').post('/api/apps', { name: 'shop', git_url: URL_OF_GIT, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
  addresses = api.services.addresses
    .of_server()
    .filter((address) => !address.includes(':'))
    .slice(0, 1)
  domain_id = await addDomain('example.com')
})
afterEach(() => api.close())

async function addDomain(hostname: string, rules: object = {}): Promise<string> {
  for (const name of [hostname, `www.${hostname}`]) api.fakes.dns.set(name, { A: addresses })
  const { body } = await api
    .as('developer')
    .post('/api/domains', { app_id, hostname, ssl_mode: 'off', ...rules })
  await settled()
  return body.data.id as string
}
async function settled(): Promise<void> {
  await api.services.domains.checks.idle()
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}
const add = (rule: object, to = domain_id) =>
  api.as('developer').post('/api/redirects', { domain_id: to, ...rule })
const test = async (url: string) =>
  (await api.as('viewer').get(`/api/redirects?test=${encodeURIComponent(url)}`)).body.test
/** Where the edge sends a request, with the host name of the domain. */
const locationAt = (port: number, path: string) =>
  new Promise<string | undefined>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false, headers: { host: 'example.com' } }, (response) =>
      resolve(response.resume().headers.location),
    ).on('error', reject)
  })
const rulesAtEdge = () => api.fakes.ingress.routes.get(domain_id)?.redirects ?? []

describe('POST /api/redirects', () => {
  it('holds at the edge at once, is told and is in the audit trail', async () => {
    const before = api.services.events.latest()
    const { status, body } = await add({
      kind: 'regex',
      from: '/blog/(\\d+)/([^/]+)',
      to: '/posts/$2',
      status: 308,
    })
    expect([status, body.data]).toEqual([
      201,
      expect.objectContaining({
        hostname: 'example.com',
        app_id,
        kind: 'regex',
        keep_query: true,
        priority: 100,
        enabled: true,
      }),
    ])
    await settled()
    expect(rulesAtEdge()).toEqual([
      {
        id: body.data.id,
        kind: 'regex',
        from: '/blog/(\\d+)/([^/]+)',
        to: '/posts/$2',
        status: 308,
        keep_query: true,
      },
    ])
    expect(api.events(before).map(({ type }) => type)).toEqual(['redirect.created'])
    expect(
      (await api.as('admin').get(`/api/audit-logs?resource=${body.data.id}`)).body.data[0],
    ).toMatchObject({
      action: 'redirect.create',
    })
  })
  it('rules are tried by priority, then by age', async () => {
    const ids = [
      (await add({ from: '/b', to: '/1', priority: 200 })).body.data.id,
      (await add({ from: '/a', to: '/2', priority: 50 })).body.data.id,
      (await add({ from: '/c', to: '/3', priority: 200 })).body.data.id,
    ]
    await settled()
    expect(rulesAtEdge().map(({ id }) => id)).toEqual([ids[1], ids[0], ids[2]])
  })
  it.each([
    ['a path without slash', { from: 'old', to: '/new' }, 'from'],
    ['a query in the path', { from: '/old?a=b', to: '/new' }, 'from'],
    ['a dangerous pattern', { kind: 'regex', from: '/(a+)+$', to: '/new' }, 'from'],
    ['a group that is not there', { kind: 'regex', from: '/(a)', to: '/$2' }, 'to'],
    ['a group of a plain path', { from: '/a', to: '/$1' }, 'to'],
    ['another scheme', { from: '/old', to: 'javascript:alert(1)' }, 'to'],
    ['a target on a host without scheme', { from: '/old', to: '//evil.example.org' }, 'to'],
    ['the same with a backslash', { from: '/old', to: '/\\evil.example.org' }, 'to'],
    ['a host that the client chooses', { kind: 'regex', from: '/(.*)', to: 'https://$1' }, 'to'],
    ['a name and password in the target', { from: '/old', to: 'https://user:pass@example.org/' }, 'to'],
    ['a line break in the target', { from: '/old', to: '/new\r\nSet-Cookie: a=b' }, 'to'],
    ['a status that is no redirect', { from: '/old', to: '/new', status: 200 }, 'status'],
  ])('refuses %s with 422 at %s', async (_what, rule, field) => {
    const before = api.services.events.latest()
    const { status, body } = await add(rule)
    expect([status, body.error.message.split(':')[0]]).toEqual([422, field])
    expect([api.services.events.latest(), (await api.as('viewer').get('/api/redirects')).body.total]).toEqual(
      [before, 0],
    )
  })
  it('keeps the domain from a path at which the rule would get no request any more', async () => {
    const { id } = (await add({ from: '/shop/old', to: '/shop/new' })).body.data
    await add({ kind: 'regex', from: '/(a|b)', to: '/c' })
    const move = (path: string) => api.as('developer').put(`/api/domains/${domain_id}`, { path })
    const refused = await move('/blog')
    expect([refused.status, refused.body.error.message]).toEqual([
      422,
      'path: would leave the redirect from /shop/old without requests. Change or delete that one first.',
    ])
    expect((await move('/shop')).status).toBe(200)
    await api.as('developer').delete(`/api/redirects/${id}`)
    expect((await move('/blog')).status).toBe(200)
  })
  it('refuses a path that the domain never gets', async () => {
    const below = await addDomain('other.com', { path: '/blog' })
    expect((await add({ from: '/old', to: '/new' }, below)).body.error.message).toMatch(/^from: is not below/)
    expect((await add({ from: '/blog/old', to: '/blog/new' }, below)).status).toBe(201)
  })
})

describe('a second rule from the same place', () => {
  it.each([
    ['exact', '/old', '/old'],
    ['exact', '/über', '/%C3%BCber'],
    ['prefix', '/docs', '/docs'],
    ['regex', '/a/(\\d+)', '^/a/(\\d+)$'],
  ])(
    '%s %s is refused with 409 that names the first, whatever its target, priority and state',
    async (kind, from, again) => {
      const { id } = (await add({ kind, from, to: '/new', enabled: false })).body.data
      const before = api.services.events.latest()
      for (const rest of [{}, { priority: 5 }, { enabled: false }, { status: 308 }]) {
        const { status, body } = await add({ kind, from: again, to: '/other', ...rest })
        expect([status, body.error.code, body.error.message]).toEqual([
          409,
          'CONFLICT',
          expect.stringContaining(id),
        ])
      }
      expect([
        api.services.events.latest(),
        (await api.as('viewer').get('/api/redirects')).body.total,
      ]).toEqual([before, 1])
    },
  )
  it('is refused with 409 when a rule is changed to it; a rule may be saved as it is', async () => {
    const [first, second] = [
      (await add({ from: '/a', to: '/x' })).body.data.id,
      (await add({ from: '/b', to: '/y' })).body.data.id,
    ]
    const refused = await api.as('developer').put(`/api/redirects/${second}`, { from: '/a' })
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining(first)])
    expect(
      (await api.as('viewer').get('/api/redirects')).body.data.map(({ from }: { from: string }) => from),
    ).toEqual(['/b', '/a'])
    expect((await api.as('developer').put(`/api/redirects/${second}`, { from: '/b', to: '/z' })).status).toBe(
      200,
    )
  })
  it('is taken for another domain, as another kind, and once the first is gone', async () => {
    const { id } = (await add({ from: '/a', to: '/x' })).body.data
    expect((await add({ kind: 'prefix', from: '/a', to: '/y' })).status).toBe(201)
    expect((await add({ from: '/a', to: '/x' }, await addDomain('other.com'))).status).toBe(201)
    await api.as('developer').delete(`/api/redirects/${id}`)
    expect((await add({ from: '/a', to: '/z' })).status).toBe(201)
  })
})

describe('paths and targets as people write them', () => {
  it.each([
    [{ from: '/über uns', to: '/info' }, '/%C3%BCber%20uns', '/info'],
    [{ kind: 'prefix', from: '/bücher', to: '/öl/$1' }, '/b%C3%BCcher', '/%C3%B6l/$1'],
    [
      { from: '/a', to: 'https://münchen.example.org/straße?q=ä' },
      '/a',
      'https://xn--mnchen-3ya.example.org/stra%C3%9Fe?q=%C3%A4',
    ],
    [{ from: '/b', to: 'https://EXAMPLE.org/%20' }, '/b', 'https://EXAMPLE.org/%20'],
  ])('%o is kept as browsers ask for it, and answers them', async (rule, from, to) => {
    const { status, body } = await add(rule)
    expect([status, body.data?.from, body.data?.to]).toEqual([201, from, to])
    expect((await test(`http://example.com${from}`)).redirect_id).toBe(body.data.id)
    expect(
      (await api.as('developer').put(`/api/redirects/${body.data.id}`, { from: rule.from })).body.data.from,
    ).toBe(from)
  })
  it('are refused with half of a character, for which no browser could ask', async () => {
    const { status, body } = await add({ from: '/c\ud800', to: '/d' })
    expect([status, body.error.details[0].path]).toEqual([422, 'from'])
  })
})

describe('a rule that another domain of the name stands before', () => {
  it.each([
    ['exact', '/two/x'],
    ['exact', '/two'],
    ['prefix', '/two/x'],
  ])('%s %s is refused with 422 that says which', async (kind, from) => {
    const two = await addDomain('example.com', { path: '/two' })
    const { status, body } = await add({ kind, from, to: '/new' })
    expect([status, body.error.message]).toEqual([
      422,
      expect.stringMatching(/^from: is served by another domain, example\.com\/two /),
    ])
    expect(body.error.message).toContain(two)
    expect((await api.as('viewer').get('/api/redirects')).body.total).toBe(0)
    expect((await add({ kind, from, to: '/new' }, two)).status).toBe(201)
  })
  it('is taken where a part of it is left', async () => {
    await addDomain('example.com', { path: '/two' })
    expect((await add({ kind: 'prefix', from: '/', to: 'https://example.org/$1' })).status).toBe(201)
    expect((await add({ from: '/twofold', to: '/new' })).status).toBe(201)
  })
  it('can still be turned off when the domain came later', async () => {
    const { body } = await add({ from: '/two/x', to: '/new' })
    await addDomain('example.com', { path: '/two' })
    const toggle = () => api.as('developer').post(`/api/redirects/${body.data.id}/toggle`)
    expect([(await toggle()).status, (await toggle()).status]).toEqual([200, 422])
  })
})

describe('a loop is refused with 422 and leaves nothing', () => {
  it.each([
    ['a rule to itself', { from: '/a', to: '/a' }],
    ['a prefix below itself', { kind: 'prefix', from: '/a', to: '/a/b$1' }],
    ['a pattern that matches its own target', { kind: 'regex', from: '/(.*)', to: 'https://example.com/$1' }],
    ['the whole host to itself over HTTP', { from: '/a', to: 'http://example.com/a' }],
  ])('%s', async (_what, rule) => {
    const { status, body } = await add(rule)
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('circle')])
    expect((await api.as('viewer').get('/api/redirects')).body.total).toBe(0)
  })
  it('two rules that lead to each other', async () => {
    expect((await add({ from: '/a', to: '/b' })).status).toBe(201)
    expect((await add({ from: '/b', to: '/a' })).status).toBe(422)
  })
  it('rules of two domains that lead to each other', async () => {
    const other = await addDomain('other.com')
    expect((await add({ kind: 'prefix', from: '/', to: 'https://other.com/$1' })).status).toBe(201)
    expect((await add({ from: '/a', to: 'https://example.com/a' }, other)).status).toBe(422)
  })
  it('a rule against the www handling, whichever comes first', async () => {
    const other = await addDomain('other.com', { www: 'to_www' })
    expect((await add({ from: '/a', to: 'https://other.com/a' }, other)).status).toBe(422)
    expect((await add({ from: '/a', to: 'https://www.example.com/a' })).status).toBe(201)
    expect(
      (await api.as('developer').put(`/api/domains/${domain_id}`, { www: 'to_apex' })).body.error.message,
    ).toMatch(/^www: .*circle/)
    expect((await api.as('developer').get(`/api/domains/${domain_id}`)).body.data.www).toBe('keep')
  })
  it('a rule to plain HTTP where HTTPS is insisted on', async () => {
    await api.as('developer').put(`/api/domains/${domain_id}/ssl-mode`, { ssl_mode: 'external' })
    await api.as('developer').put(`/api/domains/${domain_id}`, { force_https: true })
    expect((await add({ from: '/a', to: 'http://example.com/a' })).status).toBe(422)
    expect((await add({ from: '/a', to: 'http://example.com/b' })).status).toBe(201)
  })
  it('turning a rule on, or changing one', async () => {
    await add({ from: '/a', to: '/b' })
    const { body } = await add({ from: '/b', to: '/a', enabled: false })
    expect((await api.as('developer').post(`/api/redirects/${body.data.id}/toggle`)).status).toBe(422)
    expect(
      (await api.as('developer').put(`/api/redirects/${body.data.id}`, { to: '/c', enabled: true })).status,
    ).toBe(200)
    expect((await api.as('developer').put(`/api/redirects/${body.data.id}`, { to: '/a' })).status).toBe(422)
    expect((await api.as('viewer').get('/api/redirects')).body.data[0]).toMatchObject({
      to: '/c',
      enabled: true,
    })
  })
})

describe('PUT, toggle and DELETE', () => {
  it('hold at the edge at once', async () => {
    const { body } = await add({ from: '/a', to: '/b' })
    const { id } = body.data
    expect(
      (await api.as('developer').put(`/api/redirects/${id}`, { to: '/c', status: 307, keep_query: false }))
        .body.data,
    ).toMatchObject({ from: '/a', to: '/c', status: 307, keep_query: false })
    await settled()
    expect(rulesAtEdge()).toMatchObject([{ to: '/c', status: 307, keep_query: false }])
    expect((await api.as('developer').post(`/api/redirects/${id}/toggle`)).body.data.enabled).toBe(false)
    await settled()
    expect(rulesAtEdge()).toEqual([])
    await api.as('developer').post(`/api/redirects/${id}/toggle`)
    expect((await api.as('developer').delete(`/api/redirects/${id}`)).body.data).toEqual({
      id,
      deleted: true,
    })
    await settled()
    expect(rulesAtEdge()).toEqual([])
    expect((await api.as('developer').delete(`/api/redirects/${id}`)).status).toBe(404)
  })
  it('toggle makes a rule what it is told to be, and tells nobody of what is so already', async () => {
    const { id } = (await add({ from: '/a', to: '/b' })).body.data
    const before = api.services.events.latest()
    const toggle = async (enabled: unknown) =>
      api.as('developer').post(`/api/redirects/${id}/toggle`, { enabled })
    expect((await toggle(true)).body.data.enabled).toBe(true)
    expect(api.services.events.latest()).toBe(before)
    expect((await toggle(false)).body.data.enabled).toBe(false)
    expect((await toggle(false)).body.data.enabled).toBe(false)
    expect((await toggle('no')).status).toBe(422)
    expect(rulesAtEdge()).toEqual([])
  })
  it('rules go with their domain', async () => {
    await add({ from: '/a', to: '/b' })
    await api.as('developer').delete(`/api/domains/${domain_id}`)
    expect((await api.as('viewer').get('/api/redirects')).body.total).toBe(0)
  })
})

describe('GET /api/redirects', () => {
  it('filters by domain and app', async () => {
    const other = await addDomain('other.com')
    await add({ from: '/a', to: '/b' })
    await add({ from: '/c', to: '/d' }, other)
    const totals = await Promise.all(
      [`domain_id=${other}`, `app_id=${app_id}`, 'app_id=app_00000000000000000000'].map(
        async (filter) => (await api.as('viewer').get(`/api/redirects?${filter}`)).body.total,
      ),
    )
    expect(totals).toEqual([1, 2, 0])
  })
  it('tells which rule would answer an address, where it leads and how it ends', async () => {
    const exact = (await add({ from: '/old', to: '/new' })).body.data.id
    const blog = (
      await add({
        kind: 'prefix',
        from: '/blog',
        to: 'https://blog.example.org$1',
        keep_query: false,
      })
    ).body.data.id
    expect(await test('https://example.com/old?a=b')).toEqual({
      domain_id,
      redirect_id: exact,
      location: 'https://example.com/new?a=b',
      status: 301,
      ends: 'app',
      hops: [expect.objectContaining({ by: 'rule' })],
    })
    expect(await test('https://example.com/blog/1?a=b')).toMatchObject({
      redirect_id: blog,
      location: 'https://blog.example.org/1',
      ends: 'elsewhere',
    })
    expect(await test('https://example.com/blogs')).toMatchObject({
      domain_id,
      redirect_id: null,
      location: null,
      ends: 'app',
    })
    expect(await test('https://nobody.example.org/')).toEqual({
      domain_id: null,
      redirect_id: null,
      location: null,
      status: null,
      ends: 'elsewhere',
      hops: [],
    })
    expect((await api.as('viewer').get('/api/redirects')).body.test).toBeNull()
  })
  it('answers what the edge answers', async () => {
    await add({ from: '/old', to: '/new' })
    await add({ kind: 'prefix', from: '/docs', to: 'https://docs.example.org$1' })
    await add({ kind: 'regex', from: '/p/(\\d+)(?:-[a-z]+)?', to: '/posts/$1', status: 308 })
    await settled()
    const { port } = await api.fakes.ingress.listen()
    for (const path of [
      '/old',
      '/old?x=1',
      '/old/',
      '/docs',
      '/docs/a/b?c=d',
      '/docsy',
      '/p/12',
      '/p/12-ab?x=%20y',
      '/p/12-AB',
      '/',
    ]) {
      const location = await locationAt(port, path)
      const expected = await test(`http://example.com${path}`)
      expect([path, location ? new URL(location, 'http://example.com').href : null]).toEqual([
        path,
        expected.location,
      ])
    }
  })
  it.each([
    ['/p', '/q/$1', { '/p': '/q', '/p/': '/q/', '/p/foo': '/q/foo', '/p/a/b?c=d': '/q/a/b?c=d' }],
    ['/p', '/q/$1/z', { '/p': '/q/z', '/p/foo': '/q/foo/z' }],
    ['/p', '/$1', { '/p': '/', '/p/foo': '/foo' }],
    [
      '/p',
      'https://other.example.org/$1',
      { '/p': 'https://other.example.org/', '/p/foo': 'https://other.example.org/foo' },
    ],
    ['/p/', '/q/$1', { '/p/': '/q/', '/p/foo': '/q/foo' }],
    ['/p', '/q$1', { '/p': '/q', '/p/foo': '/q/foo' }],
  ])('a prefix %s to %s leaves one slash, at the edge and in the answer alike', async (from, to, desired) => {
    expect((await add({ kind: 'prefix', from, to })).body.data.to).toBe(to)
    await settled()
    const { port } = await api.fakes.ingress.listen()
    for (const [path, location] of Object.entries(desired)) {
      const expected = new URL(location, 'http://example.com').href
      expect([
        path,
        new URL((await locationAt(port, path))!, 'http://example.com').href,
        (await test(`http://example.com${path}`)).location,
      ]).toEqual([path, expected, expected])
    }
  })
  it('shows an address of another project to nobody else', async () => {
    await add({ from: '/old', to: '/new' })
    const answer = (
      await api.as('outsider').get(`/api/redirects?test=${encodeURIComponent('https://example.com/old')}`)
    ).body
    expect([answer.total, answer.test]).toEqual([
      0,
      {
        domain_id: null,
        redirect_id: null,
        location: null,
        status: null,
        ends: 'elsewhere',
        hops: [],
      },
    ])
  })
})

describe('how many there may be', () => {
  const insert = (count: number, domain: string, from: number) => {
    const { db } = api.kernel
    const project_id = api.services.http.locate('domain', domain)
    db.tx(() => {
      for (let n = from; n < from + count; n += 1)
        db.sql(
          `INSERT INTO redirects (id, domain_id, app_id, project_id, kind, source, target, status, created_at, updated_at)
           VALUES (?, ?, ?, ?, 'exact', ?, '/new', 301, '', '')`,
        ).run(`rdr_${domain}${n}`, domain, app_id, project_id, `/old/${n}`)
    })
  }
  const fault = async (to: string) => {
    const { status, body } = await add({ from: '/one-more', to: '/new' }, to)
    return [status, body.error?.message]
  }
  it('is limited for a domain, and for a project: with each change all of its chains are followed', async () => {
    insert(1000, domain_id, 0)
    expect(await fault(domain_id)).toEqual([409, expect.stringContaining('A domain may have 1000')])
    const other = await addDomain('example.org')
    insert(999, other, 0)
    for (const name of ['three', 'four', 'five']) insert(1000, await addDomain(`${name}-example.org`), 0)
    expect(await fault(other)).toEqual([201, undefined])
    expect(await fault(await addDomain('six-example.org'))).toEqual([
      409,
      expect.stringContaining('A project may have 5000'),
    ])
  })
})

it('the rules of a domain are refused once they are longer in all than a change can look through in no time', async () => {
  const long = (at: number) => ({ from: `/${at}`.padEnd(1000, 'a'), to: '/'.padEnd(2000, 'b') })
  const ids: string[] = []
  for (let at = 0; at < 87; at += 1) ids.push((await add(long(at))).body.data.id as string)
  expect((await add({ from: '/short', to: '/new' })).status).toBe(201)
  const { status, body } = await add(long(87))
  expect([status, body.error.code]).toEqual([409, 'CONFLICT'])
  expect(body.error.message).toContain('262144 characters in all')
  const change = (rule: object) => api.as('developer').put(`/api/redirects/${ids[0]}`, rule)
  expect([(await change({ to: '/a' })).status, (await change({ to: '/ab' })).status]).toEqual([200, 200])
})
