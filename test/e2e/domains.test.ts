import { get, type IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestDnsServer, startDnsServer } from '#test/support/dns-server'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { runLoad } from '../../bench/support/strict-client.ts'

/** Where names of this installation should lead; nothing is sent there. */
const ADDRESS = '203.0.113.7'
let portreeve: Portreeve
let forge: GitServer
let dns: TestDnsServer
const apps: Record<string, string> = {}

/** An app that says who it is and what it was asked for. */
const echo = (name: string) => ({
  'package.json': JSON.stringify({ name, version: '1.0.0', scripts: { start: 'node server.js' } }),
  'server.js': `const http = require('node:http')
const serve = (label) => (request, response) => response.end(label + ' ' + request.url + ' ' + (request.headers.authorization ?? '-'))
http.createServer(serve(${JSON.stringify(name)})).listen(Number(process.env.PORT), '0.0.0.0')
http.createServer(serve(${JSON.stringify(`${name} admin`)})).listen(9123, '0.0.0.0')
process.on('SIGTERM', () => process.exit(0))
`,
})

async function deploy(name: string): Promise<void> {
  const repository = forge.repository(name)
  repository.commit(echo(name))
  const { body } = await portreeve.call('POST', '/api/apps', {
    name,
    git_url: repository.url,
    soak_seconds: 0,
  })
  apps[name] = body.data.id
  await portreeve.untilApp(body.data.id, 'running')
  await portreeve.untilDeployment(body.data.latest_deployment.id)
}

beforeAll(async () => {
  forge = await startGitServer()
  dns = await startDnsServer()
  portreeve = await startPortreeve({
    env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${forge.host},${dns.address}` },
  })
  const { status, body } = await portreeve.call('PUT', '/api/settings/dns', {
    resolvers: [dns.address],
    public_addresses: [ADDRESS],
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  await deploy('shop')
  await deploy('blog')
})
afterAll(async () => {
  await portreeve?.dispose()
  await forge?.close()
  await dns?.close()
})

interface Visit {
  status: number
  headers: IncomingHttpHeaders
  body: string
}
const visit = (host: string, path = '/', headers: Record<string, string> = {}) =>
  new Promise<Visit>((resolve, reject) => {
    get(
      {
        host: '127.0.0.1',
        port: portreeve.edge_port,
        path,
        agent: false,
        headers: { host, ...headers },
      },
      (response) => {
        let body = ''
        response
          .on('data', (chunk: Buffer) => {
            body += chunk.toString()
          })
          .on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }))
      },
    ).on('error', reject)
  })
async function add(hostname: string, app: string, rules: object = {}): Promise<any> {
  dns.set(hostname, { A: [ADDRESS] })
  const { status, body } = await portreeve.call('POST', '/api/domains', {
    app_id: apps[app],
    hostname,
    ssl_mode: 'off',
    ...rules,
  })
  expect([status, body]).toEqual([201, body])
  return eventually(
    `${hostname} being active`,
    async () => {
      const { data } = (await portreeve.call('GET', `/api/domains/${body.data.id}`)).body
      return data.status === 'active' ? data : undefined
    },
    20_000,
  )
}
const change = async (id: string, rules: object) => {
  const { status, body } = await portreeve.call('PUT', `/api/domains/${id}`, rules)
  expect([status, body]).toEqual([200, body])
}

describe('a domain through the real edge', () => {
  it('serves nothing until DNS proves it, then the app, and answers 404 once it is removed', async () => {
    const { body } = await portreeve.call('POST', '/api/domains', {
      app_id: apps.shop,
      hostname: 'first.example.com',
      ssl_mode: 'off',
    })
    const { id } = body.data
    expect((await portreeve.call('POST', '/api/domains/verify', { domain_id: id })).body.data).toMatchObject({
      status: 'pending',
      verification: { message: expect.stringContaining('NXDOMAIN') },
    })
    expect((await visit('first.example.com')).status).toBe(404)
    dns.set('first.example.com', { CNAME: ['edge.example.org'] })
    dns.set('edge.example.org', { A: [ADDRESS] })
    expect(
      (await portreeve.call('POST', '/api/domains/verify', { domain_id: id })).body.data.verification,
    ).toMatchObject({ proven_by: 'address', points_here: true })
    expect(await visit('first.example.com', '/a?b=c')).toMatchObject({
      status: 200,
      body: 'shop /a?b=c -',
    })
    expect((await portreeve.call('DELETE', `/api/domains/${id}`)).status).toBe(200)
    expect((await visit('first.example.com')).status).toBe(404)
    expect((await visit('shop.apps.test')).body).toBe('shop / -')
  })
  it('several apps share a name by path, and a domain can lead to another port of the app', async () => {
    await add('shared.example.com', 'shop')
    await add('shared.example.com', 'blog', { path: '/blog', strip_path: true })
    await add('admin.example.com', 'shop', { port: 9123 })
    expect((await visit('shared.example.com', '/')).body).toBe('shop / -')
    expect((await visit('shared.example.com', '/blog/post?x=1')).body).toBe('blog /post?x=1 -')
    expect((await visit('shared.example.com', '/blogs')).body).toBe('shop /blogs -')
    expect((await visit('admin.example.com')).body).toBe('shop admin / -')
  })
  it('a wildcard serves every name one label below it', async () => {
    await add('*.wild.example.com', 'blog')
    expect([
      (await visit('a.wild.example.com')).body,
      (await visit('a.b.wild.example.com')).status,
      (await visit('wild.example.com')).status,
    ]).toEqual(['blog / -', 404, 404])
  })
  it('sends one name of a pair to the other', async () => {
    dns.set('www.pair.com', { A: [ADDRESS] })
    await add('pair.com', 'shop', { www: 'to_www' })
    const { status, headers } = await visit('pair.com', '/x?y=1')
    expect([status, headers.location]).toEqual([
      308,
      expect.stringMatching(/^http:\/\/www\.pair\.com(:\d+)?\/x\?y=1$/),
    ])
    expect((await visit('www.pair.com')).body).toBe('shop / -')
  })
  it('goes to the project whose text is in DNS, though another one was first to ask for the name', async () => {
    const { id: project_id } = (await portreeve.call('POST', '/api/projects', { name: 'rivals' })).body.data
    const rival = (await portreeve.call('POST', '/api/apps', { name: 'rival', project_id, source: 'upload' }))
      .body.data
    const claim = async (app_id: string) =>
      (
        await portreeve.call('POST', '/api/domains', {
          app_id,
          hostname: 'wanted.example.com',
          ssl_mode: 'off',
        })
      ).body.data
    const verify = async (domain: { id: string }) =>
      (await portreeve.call('POST', '/api/domains/verify', { domain_id: domain.id })).body.data
    const [squatter, owner] = [await claim(rival.id), await claim(apps.shop!)]
    dns.set('wanted.example.com', { A: [ADDRESS] })
    for (const domain of [squatter, owner])
      expect(await verify(domain)).toMatchObject({
        status: 'pending',
        verification: { points_here: true, message: expect.stringContaining('Set the TXT record') },
      })
    expect((await visit('wanted.example.com')).status).toBe(404)
    dns.set('_portreeve.wanted.example.com', {
      TXT: [owner.dns_records.find(({ type }: { type: string }) => type === 'TXT').value],
    })
    expect([(await verify(owner)).status, (await verify(squatter)).status]).toEqual(['active', 'pending'])
    expect((await visit('wanted.example.com')).body).toBe('shop / -')
  })
  it('keeps strangers out: password, addresses, maintenance; adds headers; insists on HTTPS; each from the answer on', async () => {
    const { id } = await add('guarded.example.com', 'shop')
    await change(id, {
      basic_auth: { username: 'ada', password: 'correct horse' },
      headers: { 'X-Frame-Options': 'DENY' },
    })
    expect((await visit('guarded.example.com')).status).toBe(401)
    const authorization = `Basic ${Buffer.from('ada:correct horse').toString('base64')}`
    const inside = await visit('guarded.example.com', '/', { authorization })
    expect([inside.status, inside.body, inside.headers['x-frame-options']]).toEqual([200, 'shop / -', 'DENY'])
    expect(
      (
        await visit('guarded.example.com', '/', {
          authorization: `Basic ${Buffer.from('ada:wrong').toString('base64')}`,
        })
      ).status,
    ).toBe(401)
    await change(id, { basic_auth: null, ip_allow: ['192.0.2.0/24'] })
    expect((await visit('guarded.example.com')).status).toBe(403)
    await change(id, { ip_allow: ['192.0.2.0/24', '127.0.0.1'] })
    expect((await visit('guarded.example.com')).status).toBe(200)
    await change(id, { maintenance: true })
    expect((await visit('guarded.example.com')).status).toBe(503)
    await change(id, { maintenance: false, force_https: true })
    await portreeve.call('PUT', `/api/domains/${id}/ssl-mode`, { ssl_mode: 'self_signed' })
    const { status, headers } = await visit('guarded.example.com', '/a')
    expect(status).toBe(308)
    expect(headers.location).toMatch(/^https:\/\/guarded\.example\.com(:\d+)?\/a$/)
  })
  it('another base domain moves the automatic names, and no other domain loses a request meanwhile', async () => {
    await add('steady.example.com', 'shop')
    expect((await visit('shop.apps.test')).body).toBe('shop / -')
    const answers = (host: string, status: number) =>
      eventually(
        `${host} answering ${status}`,
        async () => ((await visit(host)).status === status ? true : undefined),
        15_000,
      )
    const over = Promise.withResolvers<void>()
    const load = runLoad({
      host: '127.0.0.1',
      port: portreeve.edge_port,
      host_header: 'steady.example.com',
      connections: 8,
      until: over.promise,
    })
    try {
      for (const base_domain of ['first.example.net', 'second.example.net']) {
        expect((await portreeve.call('PUT', '/api/settings/domain', { base_domain })).status).toBe(200)
        for (const name of ['shop', 'blog']) await answers(`${name}.${base_domain}`, 200)
      }
      await answers('shop.first.example.net', 404)
      expect((await visit('shop.apps.test')).status).toBe(404)
      expect((await portreeve.call('PUT', '/api/settings/domain', { base_domain: null })).status).toBe(200)
      await answers('shop.apps.test', 200)
    } finally {
      over.resolve()
    }
    const { sent, failed, failed_total } = await load
    expect({ failed, failed_total }).toEqual({ failed: {}, failed_total: 0 })
    expect(sent).toBeGreaterThan(8)
  })
  it('a deployment takes every domain along', async () => {
    forge.repository('shop').commit(echo('shop two'))
    const { body } = await portreeve.call('POST', `/api/apps/${apps.shop}/deploy`, {})
    expect((await portreeve.untilDeployment(body.data.id)).status).toBe('live')
    expect((await visit('shared.example.com')).body).toBe('shop two / -')
    expect((await visit('admin.example.com')).body).toBe('shop two admin / -')
    expect((await visit('shared.example.com', '/blog')).body).toBe('blog / -')
  })
})

describe('redirects', () => {
  it('hold and end at the real edge from the answer on', async () => {
    const domain = await add('prompt.example.com', 'shop')
    const location = async () => (await visit('prompt.example.com', '/%C3%BCber')).headers.location
    const { id } = (
      await portreeve.call('POST', '/api/redirects', {
        domain_id: domain.id,
        from: '/über',
        to: '/one',
      })
    ).body.data
    expect(await location()).toBe('/one')
    await portreeve.call('PUT', `/api/redirects/${id}`, { to: '/zwölf' })
    expect(await location()).toBe('/zw%C3%B6lf')
    await portreeve.call('POST', `/api/redirects/${id}/toggle`, { enabled: false })
    expect(await location()).toBeUndefined()
    await portreeve.call('POST', `/api/redirects/${id}/toggle`, {})
    expect(await location()).toBe('/zw%C3%B6lf')
    await portreeve.call('DELETE', `/api/redirects/${id}`)
    expect(await location()).toBeUndefined()
  })
  it('the dry run says what the real edge answers, for every kind of rule', async () => {
    const domain = await add('rules.example.com', 'shop')
    const rules = [
      { from: '/old', to: '/new' },
      { from: '/exact', to: 'https://example.org/x?a=1', status: 302, keep_query: false },
      { kind: 'prefix', from: '/docs', to: 'https://docs.example.org$1', status: 307 },
      { kind: 'prefix', from: '/d/', to: '/e/$1' },
      { kind: 'regex', from: '/blog/(\\d+)/([^/]+)', to: '/posts/$2-$1', status: 308 },
      { kind: 'regex', from: '/(a|b)/c?(d*)', to: '/$1$2' },
      { kind: 'regex', from: '/[A-Z]{2,3}(?:-(\\w+))?', to: '/upper/$1' },
      { kind: 'regex', from: '/any\\.(.*)', to: '/dot/$1', keep_query: false },
    ]
    for (const rule of rules)
      expect((await portreeve.call('POST', '/api/redirects', { domain_id: domain.id, ...rule })).status).toBe(
        201,
      )
    const paths = [
      '/old',
      '/old?x=1',
      '/old/',
      '/Old',
      '/exact?b=2',
      '/docs',
      '/docs/',
      '/docs/a/b?c=d',
      '/docsy',
      '/d/',
      '/d/x',
      '/blog/12/hello?x=%20y',
      '/blog/12/hello/',
      '/blog/x/hello',
      '/a/',
      '/a/c',
      '/b/cddd',
      '/b/ddx',
      '/AB',
      '/ABCD',
      '/ABC-x_1',
      '/ab',
      '/any.',
      '/any.thing/else?q=1',
      '/anything',
      '/any.a%2Fb',
      '/',
    ]
    const differences: unknown[] = []
    for (const path of paths) {
      const seen = await visit('rules.example.com', path)
      const { test } = (
        await portreeve.call(
          'GET',
          `/api/redirects?test=${encodeURIComponent(`http://rules.example.com${path}`)}`,
        )
      ).body
      const location =
        seen.headers.location === undefined
          ? null
          : new URL(seen.headers.location, 'http://rules.example.com').href
      if (location !== test.location || (test.status ?? 200) !== seen.status)
        differences.push([path, seen.status, location, test.status, test.location])
    }
    expect(differences).toEqual([])
  })
})
