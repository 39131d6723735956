import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
const DAY_MS = 86_400_000
let api: TestApi
let app_id: string
let addresses: string[]
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net' } })
  api.fakes.git.commit(URL, 'main', { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': '' })
  app_id = await createApp('shop')
  addresses = api.services.addresses.of_server().filter((address) => !address.includes(':')).slice(0, 1)
})
afterEach(() => api.close())

async function createApp(name: string, project_id?: string): Promise<string> {
  const { body } = await api.as('admin').post('/api/apps', { name, git_url: URL, soak_seconds: 0, ...(project_id ? { project_id } : {}) })
  await api.services.jobs.idle()
  return body.data.id as string
}
/** A project with an app that the callers of the default project do not see. */
async function otherProject(): Promise<{ project_id: string; app_id: string }> {
  const project_id = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id as string
  return { project_id, app_id: await createApp('theirs', project_id) }
}
const add = (hostname: string, rest: object = {}, to = app_id) => api.as('admin').post('/api/domains', { app_id: to, hostname, ...rest })
/** Looks a domain up now, and tells it as it is then. */
const verify = async (domain_id: string) => (await api.as('admin').post('/api/domains/verify', { domain_id })).body.data
/** What its owner sets as the text. */
const textOf = ({ dns_records }: { dns_records: { type: string; value: string }[] }) => dns_records.find(({ type }) => type === 'TXT')!.value
/** Waits for what happens in the background. */
async function settled(): Promise<void> {
  await api.services.domains.checks.idle()
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}
async function addProven(hostname: string, rest: object = {}, to = app_id): Promise<any> {
  api.fakes.dns.set(hostname, { A: addresses })
  const { body } = await add(hostname, rest, to)
  await settled()
  return (await api.as('admin').get(`/api/domains/${body.data.id}`)).body.data
}
const routeOf = (id: string) => api.fakes.ingress.routes.get(id)
const typesSince = (seq: number) => api.events(seq).map(({ type }) => type).filter((type) => type.startsWith('domain.'))

describe('POST /api/domains', () => {
  it('answers with the records to set, looks them up, and serves once DNS leads here', async () => {
    api.fakes.dns.set('shop.example.com', { A: addresses })
    const before = api.services.events.latest()
    const { status, body } = await api.as('developer').post('/api/domains', { app_id, hostname: 'Shop.Example.com.' })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ hostname: 'shop.example.com', kind: 'custom', status: 'pending', path: '/', ssl_mode: 'acme', www: 'keep', basic_auth: null })
    expect(body.data.dns_records).toContainEqual({ type: 'A', name: 'shop.example.com', value: addresses[0], purpose: 'address', found: [], ok: false })
    expect(body.data.dns_records).toContainEqual(expect.objectContaining({ type: 'TXT', name: '_portreeve.shop.example.com', value: expect.stringMatching(/^portreeve-verification=[0-9a-f]{40}$/) }))
    await settled()
    const { body: now } = await api.as('viewer').get(`/api/domains/${body.data.id}`)
    expect(now.data).toMatchObject({ status: 'active', verification: { proven_by: 'address', points_here: true, message: 'shop.example.com leads to this server.' } })
    expect(routeOf(body.data.id)).toMatchObject({ app_id, hostnames: ['shop.example.com'], servers: [expect.objectContaining({ port: 3000 })] })
    expect(typesSince(before)).toEqual(['domain.created', 'domain.verified', 'domain.active'])
  })
  it('serves nothing under a name that nobody has proven', async () => {
    const { body } = await add('shop.example.com')
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${body.data.id}`)).body.data).toMatchObject({ status: 'pending', verification: { proven_by: null, message: expect.stringContaining('NXDOMAIN') } })
    expect([...api.fakes.ingress.routes.values()].flatMap(({ hostnames }) => hostnames)).toEqual(['shop.apps.example.net'])
  })
  it('keeps an international name in ASCII and shows it as people read it', async () => {
    const { body } = await add('MÜNCHEN.example.com')
    expect(body.data).toMatchObject({ hostname: 'xn--mnchen-3ya.example.com', hostname_unicode: 'münchen.example.com' })
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
    ['a header that sends them there after a while', { headers: { refresh: '0; url=https://example.org/' } }, 'headers'],
    ['a header that takes the place of the app\'s cookies', { headers: { 'Set-Cookie': 'a=b' } }, 'headers'],
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
    const { body } = await add('shop.example.com', { ip_allow: ['::ffff:127.0.0.1', '::FFFF:c000:200/120', '0:0:0:0:0:ffff:10.0.0.0/104', '2001:db8::/32', '192.0.2.0/24'] })
    expect(body.data.ip_allow).toEqual(['127.0.0.1', '192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32', '192.0.2.0/24'])
  })
  it('refuses a www rule for a wildcard', async () => {
    expect((await add('*.example.com', { www: 'to_apex' })).body.error.message).toMatch(/^www: /)
  })
  it('answers the same for an app that is not there and one of another project', async () => {
    const theirs = await otherProject()
    const foreign = await api.as('developer').post('/api/domains', { app_id: theirs.app_id, hostname: 'shop.example.com' })
    const unknown = await api.as('developer').post('/api/domains', { app_id: 'app_00000000000000000000', hostname: 'shop.example.com' })
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
  })
})

describe('who may have a name', () => {
  it('refuses the same name to another project with 409 that does not say whose it is', async () => {
    await addProven('shop.example.com')
    const theirs = await otherProject()
    const { status, text } = await add('shop.example.com', {}, theirs.app_id)
    expect(status).toBe(409)
    expect(text).not.toMatch(/default|prj_|app_|dom_/)
  })
  it.each([
    ['a name below a proven one', 'example.com', 'shop.example.com'],
    ['a name above a proven one', 'shop.example.com', 'example.com'],
    ['a wildcard above a proven one', 'shop.example.com', '*.example.com'],
    ['a name that a wildcard covers', '*.example.com', 'shop.example.com'],
    ['the name that a wildcard stands below', '*.example.com', 'example.com'],
    ['a name deep below a wildcard', '*.example.com', 'a.b.example.com'],
  ])('refuses %s to another project', async (_what, first, second) => {
    await addProven(first)
    const theirs = await otherProject()
    expect((await add(second, {}, theirs.app_id)).status).toBe(409)
    expect((await add(second)).status).toBe(201)
  })
  it.each(['shop.example.com', '*.example.com'])('refuses a www pair whose other name stands above or below %s of another project', async (first) => {
    await addProven(first)
    const theirs = await otherProject()
    for (const name of ['example.com', 'a.www.example.com']) api.fakes.dns.set(name, { A: addresses })
    expect((await add('www.example.com', { www: 'to_apex' }, theirs.app_id)).status).toBe(409)
  })
  it.each([['www.example.com', 'to_apex'], ['www.example.com', 'to_www'], ['example.com', 'to_www']])('refuses names above and below both names of the proven pair %s (%s) to another project', async (hostname, www) => {
    for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
    await addProven(hostname, { www })
    const theirs = await otherProject()
    for (const name of ['example.com', 'www.example.com', 'shop.example.com', '*.example.com', 'a.www.example.com']) expect([name, (await add(name, {}, theirs.app_id)).status]).toEqual([name, 409])
  })
  describe('an unproven claim', () => {
    it.each([['example.com', 'example.com'], ['example.com', 'shop.example.com'], ['shop.example.com', 'example.com'], ['*.example.com', 'shop.example.com'], ['www.example.com', 'example.com']])('of %s keeps nobody from %s: the text decides, since addresses do not tell whose a name is', async (squatted, wanted) => {
      const squatter = (await add(squatted)).body.data
      const theirs = await otherProject()
      api.fakes.dns.set(squatted, { A: addresses })
      const owner = await addProven(wanted, {}, theirs.app_id)
      expect(owner).toMatchObject({ status: 'pending', verification: { proven_by: null, points_here: true, message: expect.stringMatching(/another project of this installation asks for it.*Set the TXT record/) } })
      expect((await verify(squatter.id)).status).toBe('pending')
      api.fakes.dns.set(`_portreeve.${wanted.replace('*.', '')}`, { TXT: [textOf(owner)] })
      expect(await verify(owner.id)).toMatchObject({ status: 'active' })
      await settled()
      expect((await api.as('admin').get(`/api/domains/${squatter.id}`)).body.data).toMatchObject({ verification: { message: expect.stringContaining('belongs to another project') } })
      expect(await verify(squatter.id)).toMatchObject({ status: 'pending', verification: { proven_by: null, message: expect.stringContaining('belongs to another project') } })
    })
    it('of a name below the other one of a www pair is a rival as well', async () => {
      const squatter = (await add('shop.example.com')).body.data
      const theirs = await otherProject()
      for (const name of ['example.com', 'shop.example.com']) api.fakes.dns.set(name, { A: addresses })
      const owner = await addProven('www.example.com', { www: 'to_apex' }, theirs.app_id)
      expect(owner).toMatchObject({ status: 'pending', verification: { proven_by: null, message: expect.stringMatching(/another project of this installation asks for it/) } })
      api.fakes.dns.set('_portreeve.example.com', { TXT: [textOf(owner)] })
      expect((await verify(owner.id)).status).toBe('active')
      expect(await verify(squatter.id)).toMatchObject({ status: 'pending', verification: { message: expect.stringContaining('belongs to another project') } })
    })
    it('of a www pair contests what is below its other name', async () => {
      await add('www.example.com', { www: 'to_apex' })
      const theirs = await otherProject()
      expect(await addProven('shop.example.com', {}, theirs.app_id)).toMatchObject({ status: 'pending', verification: { proven_by: null, message: expect.stringMatching(/another project of this installation asks for it/) } })
    })
    it('that can never be proven any more contests nothing', async () => {
      await addProven('example.com')
      const theirs = await otherProject()
      // Claimed before, and lost: what lies below a proven name is its project's.
      api.kernel.db.sql(`INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at)
        VALUES ('dom_lost', ?, ?, 'shop.example.com', 'custom', 'pending', 'off', 'x', ?, ?)`).run(theirs.app_id, theirs.project_id, api.fakes.clock.iso(), api.fakes.clock.iso())
      expect((await addProven('shop.example.com')).status).toBe('active')
    })
    it('of the same project contests nothing', async () => {
      await add('example.com')
      expect((await addProven('shop.example.com')).status).toBe('active')
    })
    it('that failed contests nothing', async () => {
      await add('example.com')
      await settled()
      api.fakes.clock.advance(3 * DAY_MS)
      await api.services.domains.checks.pass()
      const theirs = await otherProject()
      expect((await addProven('example.com', {}, theirs.app_id)).status).toBe('active')
    })
    it('is not proven once the name has become the installation\'s', async () => {
      const claims = [(await add('panel.example.org')).body.data, (await add('*.example.org')).body.data, (await add('free.example.com', { www: 'to_www' })).body.data]
      for (const name of ['panel.example.org', '*.example.org', 'a.example.org', 'free.example.com', 'www.free.example.com']) api.fakes.dns.set(name, { A: addresses })
      expect((await api.as('admin').put('/api/settings/domain', { dashboard_domain: 'panel.example.org', base_domain: 'free.example.com' })).status).toBe(200)
      for (const { id } of claims) expect(await verify(id)).toMatchObject({ status: 'pending', verification: { message: expect.stringMatching(/the name of the dashboard|base domain/) } })
    })
  })
  it('a claim that was never proven keeps nobody from the name once it is removed', async () => {
    const { body } = await add('example.com')
    await settled()
    await api.as('developer').delete(`/api/domains/${body.data.id}`)
    const theirs = await otherProject()
    expect((await addProven('example.com', {}, theirs.app_id)).status).toBe('active')
  })
  it('keeps a removed name that was proven while the edge was away', async () => {
    api.fakes.dns.set('example.com', { A: addresses })
    api.fakes.ingress.failNext('setRoute', 'the edge is away')
    const { body } = await add('example.com', { ssl_mode: 'off' })
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${body.data.id}`)).body.data.status).toBe('verified')
    await api.as('developer').delete(`/api/domains/${body.data.id}`)
    const theirs = await otherProject()
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
  })
  it('the automatic name of a deleted app is nobody\'s once the installation has another base domain', async () => {
    const theirs = await otherProject()
    await api.as('admin').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    await api.as('admin').put('/api/settings/domain', { base_domain: 'apps.example.org' })
    expect((await add('shop.apps.example.net', {}, theirs.app_id)).status).toBe(201)
  })
  it('a www pair is not proven once its other name has become the dashboard\'s', async () => {
    const claim = (await add('www.panel.example.org', { www: 'to_apex' })).body.data
    for (const name of ['panel.example.org', 'www.panel.example.org']) api.fakes.dns.set(name, { A: addresses })
    expect((await api.as('admin').put('/api/settings/domain', { dashboard_domain: 'panel.example.org' })).status).toBe(200)
    expect(await verify(claim.id)).toMatchObject({ status: 'pending', verification: { proven_by: null, message: expect.stringContaining('panel.example.org is the name of the dashboard') } })
  })
  it('of two that prove a name at once one has it', async () => {
    const theirs = await otherProject()
    const claims = [(await add('example.com')).body.data, (await add('example.com', {}, theirs.app_id)).body.data]
    api.fakes.dns.set('_portreeve.example.com', { TXT: claims.map(textOf) })
    const statuses = (await Promise.all(claims.map(({ id }) => verify(id)))).map(({ status }) => status)
    expect(statuses.sort()).toEqual(['active', 'pending'])
    expect([...api.fakes.ingress.routes.values()].filter(({ hostnames }) => hostnames[0] === 'example.com')).toHaveLength(1)
  })
  it('keeps a removed name for its former project for seven days, names above and below it included', async () => {
    const domain = await addProven('example.com')
    const theirs = await otherProject()
    expect((await api.as('developer').delete(`/api/domains/${domain.id}`)).status).toBe(200)
    for (const name of ['example.com', 'shop.example.com', '*.example.com']) expect((await add(name, {}, theirs.app_id)).status).toBe(409)
    api.fakes.clock.advance(7 * DAY_MS - 1000)
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
    api.fakes.clock.advance(2000)
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(201)
  })
  it.each(['to_apex', 'to_www'])('keeps both names of a removed www pair (%s), and what is below the shorter one', async (www) => {
    for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
    const domain = await addProven('www.example.com', { www })
    const theirs = await otherProject()
    expect((await api.as('developer').delete(`/api/domains/${domain.id}`)).status).toBe(200)
    for (const name of ['example.com', 'www.example.com', 'shop.example.com']) expect([name, (await add(name, {}, theirs.app_id)).status]).toEqual([name, 409])
  })
  it('lets the former project take its name again at once', async () => {
    const domain = await addProven('example.com')
    await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect((await add('example.com')).status).toBe(201)
  })
  it('keeps the names of a deleted app as well', async () => {
    await addProven('example.com')
    const theirs = await otherProject()
    await api.as('admin').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
    expect([...api.fakes.ingress.routes.values()].filter((route) => route.app_id === app_id)).toEqual([])
  })
  it('a claim that was never proven is free again once it has failed', async () => {
    const { body } = await add('example.com')
    await settled()
    api.fakes.clock.advance(3 * DAY_MS)
    await api.services.domains.checks.pass()
    expect((await api.as('admin').get(`/api/domains/${body.data.id}`)).body.data.status).toBe('failed')
    const theirs = await otherProject()
    const taken = await addProven('example.com', {}, theirs.app_id)
    expect(taken.status).toBe('active')
    const { body: again } = await api.as('admin').post('/api/domains/verify', { domain_id: body.data.id })
    expect(again.data).toMatchObject({ status: 'failed', verification: { message: expect.stringContaining('belongs to another project') } })
  })
  it('does not go to another project with its app when what lies around it stays', async () => {
    await addProven('example.com')
    await addProven('shop.example.com', {}, await createApp('blog'))
    const theirs = await otherProject()
    const { status, body } = await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('belongs to another project')])
    expect((await api.as('viewer').get(`/api/apps/${app_id}`)).status).toBe(200)
  })
  it('does not go where the same claim is already, and the app stays', async () => {
    await add('example.com')
    const theirs = await otherProject()
    await add('example.com', {}, theirs.app_id)
    expect((await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })).status).toBe(409)
  })
  it('goes to the new project with its app', async () => {
    const domain = await addProven('example.com')
    const theirs = await otherProject()
    await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })
    expect((await api.as('admin').get(`/api/domains/${domain.id}`)).body.data.project_id).toBe(theirs.project_id)
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).status).toBe(404)
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
    expect((await api.as('viewer').get(`/api/domains/${id}`)).body.data).toMatchObject({ status: 'active', verification: { proven_by: 'txt', message: expect.stringMatching(/^The project has proven this name already\./) } })
    expect(routeOf(id)?.path).toBe('/blog')
  })
  it('share it with different paths, each its own route', async () => {
    const blog = await createApp('blog')
    const root = await addProven('example.com')
    const below = await addProven('example.com', { path: '/blog/', strip_path: true, port: 8080 }, blog)
    const [, shared] = api.services.domains.routes(blog, { addresses: ['10.0.0.1'], port: 3000 })
    expect(shared).toMatchObject({ id: below.id, app_id: blog, hostnames: ['example.com'], path: '/blog', strip_path: true, servers: [expect.objectContaining({ port: 8080 })] })
    expect(routeOf(root.id)?.path).toBeUndefined()
    expect((await add('example.com', { path: '/blog' })).status).toBe(409)
    expect((await api.as('admin').put(`/api/domains/${root.id}`, { path: '/blog' })).status).toBe(409)
  })
})

it('long inputs cost no time: names and paths are read in one pass', async () => {
  const started = process.cpuUsage()
  for (const body of [{ hostname: `${'a.'.repeat(50_000)}!` }, { hostname: 'x.com', path: `/${'a'.repeat(499)}!` }, { hostname: 'x.com', path: `/${'a/'.repeat(50_000)}!` }]) {
    expect((await api.as('admin').post('/api/domains', { app_id, ...body })).status).toBe(422)
  }
  expect(process.cpuUsage(started).user).toBeLessThan(2_000_000)
})

describe('PUT /api/domains/:id', () => {
  it('holds at the edge at once, and shows no password anywhere', async () => {
    const domain = await addProven('shop.example.com')
    const { status, body } = await api.as('developer').put(`/api/domains/${domain.id}`, {
      headers: { 'X-Frame-Options': 'DENY' }, hsts: { max_age: 600, include_subdomains: true }, ip_allow: ['192.0.2.0/24'], body_limit_bytes: 1000, request_timeout_seconds: 5, maintenance: true,
      basic_auth: { username: 'ada', password: 'canary password of a domain' }, error_pages: { 503: '<h1>Later</h1>' },
    })
    expect([status, body.data.basic_auth]).toEqual([200, { username: 'ada' }])
    await settled()
    expect(routeOf(domain.id)).toMatchObject({
      response_headers: { 'X-Frame-Options': 'DENY', 'Strict-Transport-Security': 'max-age=600; includeSubDomains' }, allowed_addresses: ['192.0.2.0/24'], body_limit_bytes: 1000,
      request_timeout_ms: 5000, maintenance: true, basic_auth: { salt: expect.any(String), digest: expect.stringMatching(/^[0-9A-F]{64}$/) }, error_pages: { 503: '<h1>Later</h1>' },
    })
    const everything = JSON.stringify([api.kernel.db.sql('SELECT * FROM domains').all(), api.kernel.db.sql('SELECT * FROM audit_log').all(), api.events()])
    expect(everything).not.toContain('canary password')
    const taken_back = await api.as('developer').put(`/api/domains/${domain.id}`, { basic_auth: null, hsts: null, ip_allow: [], headers: {}, maintenance: false })
    expect(taken_back.body.data).toMatchObject({ basic_auth: null, hsts: null, ip_allow: [], headers: {} })
    await settled()
    expect(Object.keys(routeOf(domain.id)!)).not.toContain('basic_auth')
  })
  it('does not insist on HTTPS before there is a certificate, but does when TLS ends in front', async () => {
    const domain = await addProven('shop.example.com', { force_https: true, ssl_mode: 'custom' })
    expect(routeOf(domain.id)?.force_https).toBeUndefined()
    await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'external' })
    await settled()
    expect(routeOf(domain.id)?.force_https).toBe(true)
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).body.data).toMatchObject({ ssl_mode: 'external', url: 'https://shop.example.com' })
  })
  it('tells the address that clients of a proxy in front use, not the ports of the edge behind it', async () => {
    await api.close()
    api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net', PORTREEVE_HTTP_PORT: '8080', PORTREEVE_HTTPS_PORT: '8443' } })
    api.fakes.git.commit(URL, 'main', { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': '' })
    app_id = await createApp('shop')
    const urls = await Promise.all((['off', 'external'] as const).map(async (ssl_mode) => (await add(`${ssl_mode}.example.com`, { ssl_mode })).body.data.url))
    expect(urls).toEqual(['http://off.example.com:8080', 'https://external.example.com'])
  })
  it('changes rules of the automatic name too, but not its path', async () => {
    const automatic = (await api.as('developer').get(`/api/domains?app_id=${app_id}`)).body.data[0]
    expect((await api.as('developer').put(`/api/domains/${automatic.id}`, { maintenance: true })).body.data.maintenance).toBe(true)
    expect((await api.as('developer').put(`/api/domains/${automatic.id}`, { path: '/a' })).status).toBe(422)
    await settled()
    expect(routeOf(automatic.id)?.maintenance).toBe(true)
  })
})

describe('www', () => {
  it.each([['example.com', 'to_apex', 'example.com', 'www.example.com'], ['www.example.com', 'to_www', 'www.example.com', 'example.com'], ['example.com', 'to_www', 'www.example.com', 'example.com']])('%s with %s goes with further paths of %s, whichever comes first, and with none of %s', async (hostname, www, served, alias) => {
    for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
    const blog = await createApp('blog')
    const path = await addProven(served, { path: '/blog' }, blog)
    const pair = await addProven(hostname, { www })
    expect([pair.status, path.status]).toEqual(['active', 'active'])
    expect([routeOf(pair.id), routeOf(path.id)]).toMatchObject([{ hostnames: [served], aliases: { [alias]: served } }, { hostnames: [served], path: '/blog', app_id: blog }])
    expect((await add(served, { path: '/later' }, blog)).status).toBe(201)
    expect((await add(served, { path: '/other', ssl_mode: 'off' }, blog)).body.error.message).toMatch(/^ssl_mode: must be acme or left out/)
    for (const [{ id }, ssl_mode] of [[path, 'self_signed'], [pair, 'external']] as const) {
      await api.as('admin').put(`/api/domains/${id}/ssl-mode`, { ssl_mode })
      expect((await Promise.all([pair, path].map(async (one) => (await api.as('admin').get(`/api/domains/${one.id}`)).body.data.ssl_mode)))).toEqual([ssl_mode, ssl_mode])
    }
    const refused = await add(alias, { path: '/lost' }, blog)
    expect([refused.status, refused.body.error.message]).toEqual([409, `Everything at ${alias} is sent to ${served} by its www rule, so further paths belong to ${served}. Add them there.`])
    const turned = await api.as('developer').put(`/api/domains/${pair.id}`, { www: www === 'to_www' ? 'to_apex' : 'to_www' })
    expect([turned.status, turned.body.error.message]).toEqual([409, expect.stringContaining(`further paths belong to ${alias}`)])
  })
  it.each([
    ['example.com', 'to_www', 'www.example.com', 'example.com'],
    ['example.com', 'to_apex', 'example.com', 'www.example.com'],
    ['www.example.com', 'to_apex', 'example.com', 'www.example.com'],
    ['www.example.com', 'to_www', 'www.example.com', 'example.com'],
  ])('%s with %s serves %s and sends %s there', async (hostname, www, served, alias) => {
    for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
    const domain = await addProven(hostname, { www })
    expect(routeOf(domain.id)).toMatchObject({ hostnames: [served], aliases: { [alias]: served } })
  })
  it('proves further paths of the name that is served, whatever their own text', async () => {
    const { body } = await add('example.com', { www: 'to_www' })
    api.fakes.dns.set('_portreeve.example.com', { TXT: [textOf(body.data)] })
    expect((await verify(body.data.id)).status).toBe('active')
    const { id } = (await add('www.example.com', { path: '/blog' })).body.data
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${id}`)).body.data).toMatchObject({ status: 'active', verification: { proven_by: 'txt' } })
  })
  it('needs both names proven before it is turned on', async () => {
    const domain = await addProven('www.example.com')
    const refused = await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_apex' })
    expect([refused.status, refused.body.error.message]).toEqual([422, expect.stringContaining('example.com is not in DNS (NXDOMAIN)')])
    api.fakes.dns.set('example.com', { A: addresses })
    expect((await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_apex' })).status).toBe(200)
  })
  it('does not take a name that is a domain of its own', async () => {
    await addProven('www.example.com')
    for (const name of ['other.com', 'www.other.com']) api.fakes.dns.set(name, { A: addresses })
    await addProven('other.com', { www: 'to_www' })
    for (const [hostname, rules] of [['example.com', { www: 'to_www' }], ['www.other.com', {}]] as const) {
      const { status, body } = await add(hostname, rules)
      expect([hostname, status, body.error.message]).toEqual([hostname, 409, expect.stringContaining('belongs to another www rule of the project')])
    }
  })
  it('sends away no name that has further paths', async () => {
    const domain = await addProven('example.com')
    await addProven('example.com', { path: '/blog' })
    api.fakes.dns.set('www.example.com', { A: addresses })
    const { status, body } = await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_www' })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('further paths belong to www.example.com')])
  })
})

describe('the certificate mode belongs to the name, since TLS knows no path', () => {
  const modes = async () => (await api.as('viewer').get('/api/domains')).body.data.filter((domain: { hostname: string }) => domain.hostname === 'shop.example.com').map((domain: { path: string; ssl_mode: string }) => [domain.path, domain.ssl_mode])
  it('a further path takes over the mode of the name, and is refused with another one', async () => {
    await addProven('shop.example.com', { ssl_mode: 'custom' })
    const { status, body } = await add('shop.example.com', { path: '/two', ssl_mode: 'acme' })
    expect([status, body.error.message]).toEqual([422, expect.stringMatching(/^ssl_mode: .*custom/)])
    expect((await add('shop.example.com', { path: '/two' })).body.data.ssl_mode).toBe('custom')
    expect((await add('shop.example.com', { path: '/three', ssl_mode: 'custom' })).status).toBe(201)
  })
  it('a change holds for every path of the name, in other apps too, and is told and in the audit trail of each', async () => {
    const root = await addProven('shop.example.com', { ssl_mode: 'off' })
    const other_app = await createApp('blog')
    const two = await addProven('shop.example.com', { path: '/two' }, other_app)
    const before = api.services.events.latest()
    expect((await api.as('developer').put(`/api/domains/${two.id}/ssl-mode`, { ssl_mode: 'external' })).body.data).toMatchObject({ id: two.id, ssl_mode: 'external' })
    expect(await modes()).toEqual([['/two', 'external'], ['/', 'external']])
    expect(typesSince(before)).toEqual(['domain.updated', 'domain.updated'])
    expect((await api.as('admin').get(`/api/audit-logs?resource=${root.id}`)).body.data[0]).toMatchObject({ action: 'domain.ssl_mode' })
  })
  it('the domains of other names keep theirs', async () => {
    const shop = await addProven('shop.example.com', { ssl_mode: 'off' })
    const blog = await addProven('blog.example.com', { ssl_mode: 'off' })
    await api.as('developer').put(`/api/domains/${shop.id}/ssl-mode`, { ssl_mode: 'external' })
    expect((await api.as('viewer').get(`/api/domains/${blog.id}`)).body.data.ssl_mode).toBe('off')
  })
})

describe('an answer comes when the edge obeys', () => {
  beforeEach(() => {
    const { setRoute, removeRoute } = api.fakes.ingress
    const turns = async () => {
      for (let left = 20; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve))
    }
    api.fakes.ingress.setRoute = (route) => turns().then(() => setRoute(route))
    api.fakes.ingress.removeRoute = (id) => turns().then(() => removeRoute(id))
  })
  it('of a change, of a mode and of a removal', async () => {
    const { id } = (await add('shop.example.com', { ssl_mode: 'off', force_https: true })).body.data
    api.fakes.dns.set('shop.example.com', { A: addresses })
    const domain = (await api.as('developer').post('/api/domains/verify', { domain_id: id })).body.data
    await api.as('developer').put(`/api/domains/${domain.id}`, { ip_allow: ['10.0.0.0/8'] })
    expect(routeOf(domain.id)?.allowed_addresses).toEqual(['10.0.0.0/8'])
    await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'external' })
    expect(routeOf(domain.id)?.force_https).toBe(true)
    await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect(routeOf(domain.id)).toBeUndefined()
  })
  it('of a look-up that proves the name', async () => {
    const { body: { data: { id } } } = await add('shop.example.com')
    await settled()
    api.fakes.dns.set('shop.example.com', { A: addresses })
    expect((await api.as('developer').post('/api/domains/verify', { domain_id: id })).body.data.status).toBe('active')
    expect(routeOf(id)).toBeDefined()
  })
})

describe('DELETE /api/domains/:id', () => {
  it('takes the name off the edge and leaves the others of the app', async () => {
    const domain = await addProven('shop.example.com')
    const before = api.services.events.latest()
    const { status, body } = await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect([status, body.data]).toEqual([200, { id: domain.id, deleted: true }])
    await settled()
    expect(routeOf(domain.id)).toBeUndefined()
    expect([...api.fakes.ingress.routes.values()].map(({ hostnames }) => hostnames)).toEqual([['shop.apps.example.net']])
    expect(typesSince(before)).toEqual(['domain.deleted'])
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).status).toBe(404)
  })
  it('does not remove the automatic name', async () => {
    const automatic = (await api.as('developer').get(`/api/domains?app_id=${app_id}`)).body.data[0]
    expect((await api.as('developer').delete(`/api/domains/${automatic.id}`)).status).toBe(409)
  })
})

it('a deployment takes every domain of the app along', async () => {
  const domain = await addProven('shop.example.com')
  const before = routeOf(domain.id)!.servers
  await api.as('developer').post(`/api/apps/${app_id}/deploy`, {})
  await api.services.jobs.idle()
  const automatic = [...api.fakes.ingress.routes.values()].find((route) => route.hostnames[0] === 'shop.apps.example.net')!
  expect(routeOf(domain.id)!.servers).toEqual(automatic.servers)
  expect(routeOf(domain.id)!.servers).not.toEqual(before)
})
it('the dashboard cannot be given the name of an app', async () => {
  await addProven('shop.example.com')
  const { status, body } = await api.as('admin').put('/api/settings/domain', { dashboard_domain: 'shop.example.com' })
  expect([status, body.error.message]).toEqual([422, expect.stringMatching(/^dashboard_domain: is a domain of an app/)])
})
describe('names of the installation', () => {
  const set = (change: object) => api.as('admin').put('/api/settings/domain', change)
  const refusal = async (change: object) => {
    const before = [(await api.as('admin').get('/api/settings')).body.data.domain, await names()]
    const { status, body } = await set(change)
    expect([(await api.as('admin').get('/api/settings')).body.data.domain, await names()]).toEqual(before)
    return `${status} ${body.error?.message}`
  }
  const names = async () => (await api.as('admin').get('/api/domains')).body.data.map(({ hostname }: { hostname: string }) => hostname).sort()
  it.each(['wild.example.com', 'deep.wild.example.com'])('the base domain %s is refused in a name that one project has proven, while there are others', async (base_domain) => {
    await addProven('*.wild.example.com')
    await otherProject()
    expect(await refusal({ base_domain })).toMatch(/^422 base_domain: is or lies below \*\.wild\.example\.com/)
  })
  it('the base domain may lie in a name of the only project', async () => {
    await addProven('example.com')
    expect((await set({ base_domain: 'apps.example.com' })).status).toBe(200)
    expect(await names()).toContain('shop.apps.example.com')
  })
  it('the base domain is refused when it would put an app above or at a name that another project has proven', async () => {
    const other = await otherProject()
    await addProven('*.shop.example.com', {}, other.app_id)
    expect(await refusal({ base_domain: 'example.com' })).toMatch(/^422 base_domain: would give apps names that are taken: shop\.example\.com\. /)
  })
  it('the base domain is refused when names of apps are taken, with the first few of them; free ones all move', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await createApp(name)
      await addProven(`${name}.example.com`)
    }
    expect(await refusal({ base_domain: 'example.com' })).toContain('taken: a.example.com, b.example.com, c.example.com and 1 more.')
    expect((await set({ base_domain: 'free.example.com' })).status).toBe(200)
    expect(await names()).toEqual(expect.arrayContaining(['a', 'b', 'c', 'd', 'shop'].map((name) => `${name}.free.example.com`)))
  })
  it('the dashboard gets no name that a wildcard of an app covers', async () => {
    await addProven('*.wild.example.com')
    expect(await refusal({ dashboard_domain: 'panel.wild.example.com' })).toMatch(/^422 dashboard_domain: is covered by \*\.wild\.example\.com/)
    expect((await set({ dashboard_domain: 'a.panel.wild.example.com' })).status).toBe(200)
  })
})
describe('the name of the dashboard', () => {
  beforeEach(() => api.as('admin').put('/api/settings/domain', { dashboard_domain: 'www.example.org' }))
  it.each([
    ['is no domain of an app', 'www.example.org', {}, /^hostname: is the name of the dashboard/],
    ['is covered by no wildcard of an app', '*.example.org', {}, /^hostname: covers www\.example\.org, the name of the dashboard/],
    ['is taken by no www rule', 'example.org', { www: 'to_apex' }, /^www: would take www\.example\.org, which is the name of the dashboard/],
  ])('%s', async (_what, hostname, rules, message) => {
    const { status, body } = await add(hostname, rules)
    expect([status, body.error.message]).toEqual([422, expect.stringMatching(message)])
  })
  it('is taken by no later www rule, and names beside it are free', async () => {
    api.fakes.dns.set('www.example.org', { A: addresses })
    const domain = await addProven('example.org')
    expect((await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_www' })).status).toBe(422)
    expect((await add('*.sub.example.org')).status).toBe(201)
  })
})
describe('how many domains', () => {
  /** Rows as they are when somebody has added them. */
  const fill = (count: number, to: string, project_id: string) => {
    const insert = api.kernel.db.raw.prepare(`INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at) VALUES (?, ?, ?, ?, 'custom', 'failed', 'off', 'x', ?, ?)`)
    for (let at = 0; at < count; at += 1) insert.run(`dom_${to}${at}`, to, project_id, `d${at}.${to.replaceAll('_', '-').toLowerCase()}.com`, api.fakes.clock.iso(), api.fakes.clock.iso())
  }
  const project_id = () => api.services.http.default_project()
  it('an app may have 250 and a project 500, the automatic names aside', async () => {
    fill(249, app_id, project_id())
    expect((await add('shop.example.com')).status).toBe(201)
    const refused = await add('more.example.com')
    expect([refused.status, refused.body.error.message]).toEqual([409, 'An app may have 250 domains at most. Remove one, or ask an administrator to set the quota of domains of the project.'])
    const blog = await createApp('blog')
    fill(249, blog, project_id())
    expect((await add('blog.example.com', {}, blog)).status).toBe(201)
    const notes = await createApp('notes')
    expect((await add('notes.example.com', {}, notes)).body.error.message).toMatch(/^The project may have 500 domains at most\./)
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
describe('automatic names', () => {
  const modes = async () => (await api.as('admin').get('/api/domains')).body.data.map(({ hostname, ssl_mode }: { hostname: string; ssl_mode: string }) => [hostname, ssl_mode])
  it('serve plain HTTP until the operator says that the wildcard of a public base domain leads here; then they get certificates', async () => {
    expect(await modes()).toEqual([['shop.apps.example.net', 'off']])
    await api.as('admin').put('/api/settings/dns', { wildcard: true })
    await createApp('blog')
    expect(await modes()).toContainEqual(['blog.apps.example.net', 'acme'])
    expect((await api.as('admin').get('/api/certificates')).body.data[0]).toMatchObject({ source: 'acme' })
    await api.as('admin').put('/api/settings/domain', { base_domain: 'apps.internal' })
    expect(await modes()).toEqual([['blog.apps.internal', 'off'], ['shop.apps.internal', 'off']])
  })
})
it('every change is in the audit trail', async () => {
  const domain = await addProven('shop.example.com')
  await api.as('developer').put(`/api/domains/${domain.id}`, { maintenance: true })
  await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'off' })
  await api.as('developer').post('/api/domains/verify', { domain_id: domain.id })
  await api.as('developer').delete(`/api/domains/${domain.id}`)
  const { body } = await api.as('admin').get(`/api/audit-logs?resource=${domain.id}`)
  expect(body.data.map(({ action }: { action: string }) => action).reverse()).toEqual(['domain.create', 'domain.update', 'domain.ssl_mode', 'domain.verify', 'domain.delete'])
})
