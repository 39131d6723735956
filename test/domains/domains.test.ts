import { describe, expect, it } from 'vitest'
import {
  add,
  addProven,
  addresses,
  api,
  app_id,
  createApp,
  otherProject,
  routeOf,
  settled,
  start,
  textOf,
  typesSince,
  verify,
  useDomains,
} from './harness.ts'

useDomains()

describe('POST /api/domains', () => {
  it('answers with the records to set, looks them up, and serves once DNS leads here', async () => {
    api.fakes.dns.set('shop.example.com', { A: addresses })
    const before = api.services.events.latest()
    const { status, body } = await api
      .as('developer')
      .post('/api/domains', { app_id, hostname: 'Shop.Example.com.' })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      hostname: 'shop.example.com',
      kind: 'custom',
      status: 'pending',
      path: '/',
      ssl_mode: 'acme',
      www: 'keep',
      basic_auth: null,
    })
    expect(body.data.dns_records).toContainEqual({
      type: 'A',
      name: 'shop.example.com',
      value: addresses[0],
      purpose: 'address',
      found: [],
      ok: false,
    })
    expect(body.data.dns_records).toContainEqual(
      expect.objectContaining({
        type: 'TXT',
        name: '_portreeve.shop.example.com',
        value: expect.stringMatching(/^portreeve-verification=[0-9a-f]{40}$/),
      }),
    )
    await settled()
    const { body: now } = await api.as('viewer').get(`/api/domains/${body.data.id}`)
    expect(now.data).toMatchObject({
      status: 'active',
      verification: {
        proven_by: 'address',
        points_here: true,
        message: 'shop.example.com leads to this server.',
      },
    })
    expect(routeOf(body.data.id)).toMatchObject({
      app_id,
      hostnames: ['shop.example.com'],
      servers: [expect.objectContaining({ port: 3000 })],
    })
    expect(typesSince(before)).toEqual(['domain.created', 'domain.verified', 'domain.active'])
  })
  it('serves nothing under a name that nobody has proven', async () => {
    const { body } = await add('shop.example.com')
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${body.data.id}`)).body.data).toMatchObject({
      status: 'pending',
      verification: { proven_by: null, message: expect.stringContaining('NXDOMAIN') },
    })
    expect([...api.fakes.ingress.routes.values()].flatMap(({ hostnames }) => hostnames)).toEqual([
      'shop.apps.example.net',
    ])
  })
  it('keeps an international name in ASCII and shows it as people read it', async () => {
    const { body } = await add('MÜNCHEN.example.com')
    expect(body.data).toMatchObject({
      hostname: 'xn--mnchen-3ya.example.com',
      hostname_unicode: 'münchen.example.com',
    })
  })
  it.each([
    ['the base domain', 'apps.example.net'],
    ['a name below the base domain', 'blog.apps.example.net'],
    ['a public suffix', 'co.uk'],
    ['an address', '192.0.2.1'],
  ])('refuses %s with 422 and the reason, and nothing happens', async (_what, hostname) => {
    const before = api.services.events.latest()
    const { status, body } = await add(hostname)
    expect([status, body.error.code]).toEqual([422, 'VALIDATION_ERROR'])
    expect(body.error.message).toMatch(/^hostname: /)
    expect(api.services.events.latest()).toBe(before)
  })
  it.each([
    ['a framing header', { headers: { 'Content-Length': '5' } }, 'headers'],
    ['a hop-by-hop header', { headers: { connection: 'close' } }, 'headers'],
    ['a header that sends browsers elsewhere', { headers: { Location: 'https://example.org/' } }, 'headers'],
    [
      'a header that sends them there after a while',
      { headers: { refresh: '0; url=https://example.org/' } },
      'headers',
    ],
    ["a header that takes the place of the app's cookies", { headers: { 'Set-Cookie': 'a=b' } }, 'headers'],
    ['a header that names the form of one body', { headers: { 'Content-Type': 'text/plain' } }, 'headers'],
    ['a header name with a space', { headers: { 'X A': 'b' } }, 'headers'],
    ['a header with a line break', { headers: { 'X-A': 'a\r\nSet-Cookie: b' } }, 'headers'],
    ['a header that is named twice', { headers: { 'X-A': '1', 'x-a': '2' } }, 'headers'],
    ['HSTS twice', { headers: { 'strict-transport-security': 'max-age=1' }, hsts: { max_age: 1 } }, 'hsts'],
    ['preloading without names below', { hsts: { max_age: 31_536_000, preload: true } }, 'hsts'],
    ['a network that is none', { ip_allow: ['10.0.0.0/33'] }, 'ip_allow'],
    ['a user name with a colon', { basic_auth: { username: 'a:b', password: 'long enough' } }, 'basic_auth'],
    ['a short password', { basic_auth: { username: 'a', password: 'short' } }, 'basic_auth'],
    ['a path that climbs', { path: '/a/../b' }, 'path'],
    ['a path with a query', { path: '/a?b' }, 'path'],
    ['taking off no path', { strip_path: true }, 'strip_path'],
    ['a www rule on a path', { path: '/a', www: 'to_www' }, 'www'],
    ['a page for a status that has none', { error_pages: { 200: '<p>' } }, 'error_pages'],
    ['a port that is none', { port: 70_000 }, 'port'],
  ])('refuses %s', async (_what, rules, field) => {
    const { status, body } = await add('shop.example.com', rules)
    expect([status, body.error.message.split(/[.:]/)[0]]).toEqual([422, field])
  })
  it('an IPv4 address or network that is written as IPv6 is kept as the IPv4 that requests come from', async () => {
    const { body } = await add('shop.example.com', {
      ip_allow: [
        '::ffff:127.0.0.1',
        '::FFFF:c000:200/120',
        '0:0:0:0:0:ffff:10.0.0.0/104',
        '2001:db8::/32',
        '192.0.2.0/24',
      ],
    })
    expect(body.data.ip_allow).toEqual([
      '127.0.0.1',
      '192.0.2.0/24',
      '10.0.0.0/8',
      '2001:db8::/32',
      '192.0.2.0/24',
    ])
  })
  it('refuses a www rule for a wildcard', async () => {
    expect((await add('*.example.com', { www: 'to_apex' })).body.error.message).toMatch(/^www: /)
  })
  it('answers the same for an app that is not there and one of another project', async () => {
    const theirs = await otherProject()
    const foreign = await api
      .as('developer')
      .post('/api/domains', { app_id: theirs.app_id, hostname: 'shop.example.com' })
    const unknown = await api
      .as('developer')
      .post('/api/domains', { app_id: 'app_00000000000000000000', hostname: 'shop.example.com' })
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
  })
})

describe('several apps under one name', () => {
  it('prove it once: a further path of a proven name serves at once, whatever its own text', async () => {
    const { body } = await add('example.com')
    api.fakes.dns.set('_portreeve.example.com', { TXT: [textOf(body.data)] })
    expect((await verify(body.data.id)).status).toBe('active')
    const blog = await createApp('blog')
    const { id } = (await add('example.com', { path: '/blog' }, blog)).body.data
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${id}`)).body.data).toMatchObject({
      status: 'active',
      verification: {
        proven_by: 'txt',
        message: expect.stringMatching(/^The project has proven this name already\./),
      },
    })
    expect(routeOf(id)?.path).toBe('/blog')
  })
  it('share it with different paths, each its own route', async () => {
    const blog = await createApp('blog')
    const root = await addProven('example.com')
    const below = await addProven('example.com', { path: '/blog/', strip_path: true, port: 8080 }, blog)
    const [, shared] = api.services.domains.routes(blog, { addresses: ['10.0.0.1'], port: 3000 })
    expect(shared).toMatchObject({
      id: below.id,
      app_id: blog,
      hostnames: ['example.com'],
      path: '/blog',
      strip_path: true,
      servers: [expect.objectContaining({ port: 8080 })],
    })
    expect(routeOf(root.id)?.path).toBeUndefined()
    expect((await add('example.com', { path: '/blog' })).status).toBe(409)
    expect((await api.as('admin').put(`/api/domains/${root.id}`, { path: '/blog' })).status).toBe(409)
  })
})

it('long inputs cost no time: names and paths are read in one pass', async () => {
  const started = process.cpuUsage()
  for (const body of [
    { hostname: `${'a.'.repeat(50_000)}!` },
    { hostname: 'x.com', path: `/${'a'.repeat(499)}!` },
    { hostname: 'x.com', path: `/${'a/'.repeat(50_000)}!` },
  ]) {
    expect((await api.as('admin').post('/api/domains', { app_id, ...body })).status).toBe(422)
  }
  expect(process.cpuUsage(started).user).toBeLessThan(2_000_000)
})

it('headers and pages are refused once a project has more of them than a change can read in no time', async () => {
  const error_pages = Object.fromEntries(
    [403, 404, 502, 503, 504].map((status) => [status, 'x'.repeat(13_000)]),
  )
  const statuses: number[] = []
  const ids: string[] = []
  for (let at = 0; at < 130; at += 1) {
    const { status, body } = await add(`d${at}.example.com`, { error_pages })
    statuses.push(status)
    if (status === 201) ids.push(body.data.id as string)
    else expect(body.error.message).toContain('8388608 characters in all')
  }
  expect([statuses.indexOf(409), ids.length]).toEqual([128, 128])
  expect((await add('plain.example.com')).status).toBe(201)
  const change = (rules: object) => api.as('developer').put(`/api/domains/${ids[0]}`, rules)
  const headers = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`X-${at}`, 'y'.repeat(3_950)]))
  expect([
    (await change({ headers })).status,
    (await change({ error_pages: {} })).status,
    (await change({ headers })).status,
  ]).toEqual([409, 200, 200])
})

describe('PUT /api/domains/:id', () => {
  it('holds at the edge at once, and shows no password anywhere', async () => {
    const domain = await addProven('shop.example.com')
    const { status, body } = await api.as('developer').put(`/api/domains/${domain.id}`, {
      headers: { 'X-Frame-Options': 'DENY' },
      hsts: { max_age: 600, include_subdomains: true },
      ip_allow: ['192.0.2.0/24'],
      body_limit_bytes: 1000,
      request_timeout_seconds: 5,
      maintenance: true,
      basic_auth: { username: 'ada', password: 'canary password of a domain' },
      error_pages: { 503: '<h1>Later</h1>' },
    })
    expect([status, body.data.basic_auth]).toEqual([200, { username: 'ada' }])
    await settled()
    expect(routeOf(domain.id)).toMatchObject({
      response_headers: {
        'X-Frame-Options': 'DENY',
        'Strict-Transport-Security': 'max-age=600; includeSubDomains',
      },
      allowed_addresses: ['192.0.2.0/24'],
      body_limit_bytes: 1000,
      request_timeout_ms: 5000,
      maintenance: true,
      basic_auth: { salt: expect.any(String), digest: expect.stringMatching(/^[0-9A-F]{64}$/) },
      error_pages: { 503: '<h1>Later</h1>' },
    })
    const everything = JSON.stringify([
      api.kernel.db.sql('SELECT * FROM domains').all(),
      api.kernel.db.sql('SELECT * FROM audit_log').all(),
      api.events(),
    ])
    expect(everything).not.toContain('canary password')
    const taken_back = await api.as('developer').put(`/api/domains/${domain.id}`, {
      basic_auth: null,
      hsts: null,
      ip_allow: [],
      headers: {},
      maintenance: false,
    })
    expect(taken_back.body.data).toMatchObject({
      basic_auth: null,
      hsts: null,
      ip_allow: [],
      headers: {},
    })
    await settled()
    expect(Object.keys(routeOf(domain.id)!)).not.toContain('basic_auth')
  })
  it('does not insist on HTTPS before there is a certificate, but does when TLS ends in front', async () => {
    const domain = await addProven('shop.example.com', { force_https: true, ssl_mode: 'custom' })
    expect(routeOf(domain.id)?.force_https).toBeUndefined()
    await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'external' })
    await settled()
    expect(routeOf(domain.id)?.force_https).toBe(true)
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).body.data).toMatchObject({
      ssl_mode: 'external',
      url: 'https://shop.example.com',
    })
  })
  it('tells the address that clients of a proxy in front use, not the ports of the edge behind it', async () => {
    await api.close()
    await start({ PORTREEVE_HTTP_PORT: '8080', PORTREEVE_HTTPS_PORT: '8443' })
    const urls = await Promise.all(
      (['off', 'external'] as const).map(
        async (ssl_mode) => (await add(`${ssl_mode}.example.com`, { ssl_mode })).body.data.url,
      ),
    )
    expect(urls).toEqual(['http://off.example.com:8080', 'https://external.example.com'])
  })
  it('changes rules of the automatic name too, but not its path', async () => {
    const automatic = (await api.as('developer').get(`/api/domains?app_id=${app_id}`)).body.data[0]
    expect(
      (await api.as('developer').put(`/api/domains/${automatic.id}`, { maintenance: true })).body.data
        .maintenance,
    ).toBe(true)
    expect((await api.as('developer').put(`/api/domains/${automatic.id}`, { path: '/a' })).status).toBe(422)
    await settled()
    expect(routeOf(automatic.id)?.maintenance).toBe(true)
  })
})

describe('how many domains', () => {
  /** Rows as they are when somebody has added them. */
  const fill = (count: number, to: string, project_id: string) => {
    const insert = api.kernel.db.raw.prepare(
      `INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at) VALUES (?, ?, ?, ?, 'custom', 'failed', 'off', 'x', ?, ?)`,
    )
    for (let at = 0; at < count; at += 1)
      insert.run(
        `dom_${to}${at}`,
        to,
        project_id,
        `d${at}.${to.replaceAll('_', '-').toLowerCase()}.com`,
        api.fakes.clock.iso(),
        api.fakes.clock.iso(),
      )
  }
  const project_id = () => api.services.http.default_project()
  it('an app may have 250 and a project 500, the automatic names aside', async () => {
    fill(249, app_id, project_id())
    expect((await add('shop.example.com')).status).toBe(201)
    const refused = await add('more.example.com')
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      'An app may have 250 domains at most. Remove one, or ask an administrator to set the quota of domains of the project.',
    ])
    const blog = await createApp('blog')
    fill(249, blog, project_id())
    expect((await add('blog.example.com', {}, blog)).status).toBe(201)
    const notes = await createApp('notes')
    expect((await add('notes.example.com', {}, notes)).body.error.message).toMatch(
      /^The project may have 500 domains at most\./,
    )
    const theirs = await otherProject()
    expect((await add('example.org', {}, theirs.app_id)).status).toBe(201)
  })
  it('the quota of the project takes the place of both, also when requests come at once', async () => {
    await api.as('admin').put(`/api/projects/${project_id()}`, { quotas: { domains: 3 } })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => add(`d${at}.example.com`)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(5)
    await api.as('admin').put(`/api/projects/${project_id()}`, { quotas: { domains: 1000 } })
    fill(300, app_id, project_id())
    expect((await add('more.example.com')).status).toBe(201)
  })
})

describe('GET /api/domains', () => {
  it('finds names by a part of them, also as people write them, within the other filters', async () => {
    for (const name of ['www.shop.example.com', 'bücher.example.org', 'blog.example.org']) await add(name)
    const found = async (query: string) =>
      (await api.as('viewer').get(`/api/domains?${query}`)).body.data.map(
        ({ hostname }: { hostname: string }) => hostname,
      )
    expect(await found('q=SHOP.example')).toEqual(['www.shop.example.com'])
    expect(await found(`q=${encodeURIComponent('bücher')}`)).toEqual(['xn--bcher-kva.example.org'])
    expect(await found('q=example.org&sort=hostname')).toEqual([
      'blog.example.org',
      'xn--bcher-kva.example.org',
    ])
    expect(await found('q=example.org&status=active')).toEqual([])
  })
})

describe('automatic names', () => {
  const modes = async () =>
    (await api.as('admin').get('/api/domains')).body.data.map(
      ({ hostname, ssl_mode }: { hostname: string; ssl_mode: string }) => [hostname, ssl_mode],
    )
  it('serve plain HTTP until the operator says that the wildcard of a public base domain leads here; then they get certificates', async () => {
    expect(await modes()).toEqual([['shop.apps.example.net', 'off']])
    await api.as('admin').put('/api/settings/dns', { wildcard: true })
    await createApp('blog')
    expect(await modes()).toContainEqual(['blog.apps.example.net', 'acme'])
    expect((await api.as('admin').get('/api/certificates')).body.data[0]).toMatchObject({
      source: 'acme',
    })
    await api.as('admin').put('/api/settings/domain', { base_domain: 'apps.internal' })
    expect(await modes()).toEqual([
      ['blog.apps.internal', 'off'],
      ['shop.apps.internal', 'off'],
    ])
  })
})

it('every change is in the audit trail', async () => {
  const domain = await addProven('shop.example.com')
  await api.as('developer').put(`/api/domains/${domain.id}`, { maintenance: true })
  await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'off' })
  await api.as('developer').post('/api/domains/verify', { domain_id: domain.id })
  await api.as('developer').delete(`/api/domains/${domain.id}`)
  const { body } = await api.as('admin').get(`/api/audit-logs?resource=${domain.id}`)
  expect(body.data.map(({ action }: { action: string }) => action).reverse()).toEqual([
    'domain.create',
    'domain.update',
    'domain.ssl_mode',
    'domain.verify',
    'domain.delete',
  ])
})
