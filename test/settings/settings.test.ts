import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFakeDns } from '#server/platform/dns-providers/fake'
import { DEFAULT_DIRECTORY } from '#server/settings/schema'
import { MASK } from '#server/kernel/schemas'
import { createTestApi, type TestApi } from '#test/support/api'

const SECTIONS = {
  '': 'server',
  '/domain': 'domain',
  '/dns-provider': 'dns_provider',
  '/acme': 'acme',
  '/dns': 'dns',
  '/smtp': 'smtp',
} as const
const dns = createFakeDns()
/** A provider with a server of the administrator's choice, which notes what it is asked with. */
const asked: { server?: string | undefined; token: string }[] = []
let held: Promise<void> | undefined
const elsewhere = {
  ...dns.descriptor,
  name: 'elsewhere',
  config: v.strictObject({ server: v.optional(v.string()), token: v.string() }),
  create: (config: { server?: string | undefined; token: string }) => ({
    check: async () => {
      asked.push(config)
      await held
    },
    addTxt: async () => undefined,
    removeTxt: async () => undefined,
  }),
}
let api: TestApi
let directory: Server
let directory_url: string
let meta: Record<string, unknown> = {}
let answer: (base: string) => { status: number; body: string }
const wellFormed = (base: string) => ({
  status: 200,
  body: JSON.stringify({
    newNonce: `${base}/nonce`,
    newAccount: `${base}/account`,
    newOrder: `${base}/order`,
    meta,
  }),
})

beforeAll(async () => {
  answer = wellFormed
  directory = createServer((_request, response) => {
    const { status, body } = answer(directory_url)
    response.writeHead(status).end(body)
  })
  await new Promise<void>((resolve) => directory.listen(0, '127.0.0.1', resolve))
  directory_url = `http://127.0.0.1:${(directory.address() as AddressInfo).port}`
  api = await createTestApi({
    environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: directory_url.slice(7) },
    dns_providers: [dns.descriptor, elsewhere],
  })
})
afterAll(async () => {
  await api.close()
  directory.close()
})
const put = (section: string, body: unknown) => api.as('admin').put(`/api/settings${section}`, body)
const read = async () => (await api.as('admin').get('/api/settings')).body.data
const last = () =>
  api.kernel.db.sql('SELECT * FROM audit_log ORDER BY rowid DESC LIMIT 1').get() as {
    action: string
    resource_id: string
    before: string
    after: string
  }
const rawRow = (section: string) =>
  api.kernel.db.sql('SELECT * FROM settings WHERE section = ?').get(section) as
    | { value: string; secrets: string | null }
    | undefined

describe('GET /api/settings', () => {
  it('shows every section with its defaults before anything was set', async () => {
    const all = await read()
    expect(all).toEqual({
      server: {
        name: 'Portreeve',
        build_concurrency: 1,
        audit_retention_days: 365,
        event_retention_days: 90,
        job_retention_days: 90,
        deployment_log_retention_days: 90,
        releases_kept: 5,
        runtime_log_retention_days: 14,
        runtime_log_max_bytes: 20 * 1024 * 1024,
        unused_image_retention_days: 7,
        build_cache_retention_days: 14,
        build_cache_disk_percent: 20,
        disk_pressure_percent: 85,
        default_cpus: null,
        default_memory_bytes: 512 * 1024 ** 2,
        default_project_quotas: {},
        cors_origins: [],
        owners_may_invite: false,
      },
      domain: { dashboard_domain: null, base_domain: null },
      dns_provider: { provider: null, config: {} },
      acme: {
        directory_url: DEFAULT_DIRECTORY,
        email: null,
        eab: null,
        key_type: 'ecdsa',
        challenge: 'http-01',
      },
      dns: { resolvers: [], public_addresses: [], wildcard: false },
      smtp: {
        host: null,
        port: null,
        security: 'starttls',
        username: null,
        password: null,
        from: null,
      },
      in_use: {
        base_domain: 'apps.test',
        public_url: expect.stringMatching(/^http:\/\/.+:9000$/),
        warnings: [],
      },
      updated_at: {
        server: null,
        domain: null,
        dns_provider: null,
        acme: null,
        dns: null,
        smtp: null,
      },
    })
  })
  it.each(['owner', 'developer', 'viewer', 'outsider', 'reader', 'read_key', 'deploy_key'] as const)(
    'is for administrators, not for %s',
    async (caller) => {
      expect((await api.as(caller).get('/api/settings')).status).toBe(403)
      for (const section of Object.keys(SECTIONS))
        expect([section, (await api.as(caller).put(`/api/settings${section}`, {})).status]).toEqual([
          section,
          403,
        ])
    },
  )
})

describe('every section', () => {
  it.each(Object.keys(SECTIONS))(
    'PUT /api/settings%s refuses a field that it does not know, and tells nobody',
    async (section) => {
      const before = api.services.events.latest()
      const refused = await put(section, { provider: null, host: null, surprise: 1 })
      expect([refused.status, refused.body.error.code]).toEqual([422, 'VALIDATION_ERROR'])
      expect(api.services.events.latest()).toBe(before)
    },
  )
  it.each(Object.entries(SECTIONS))(
    'PUT /api/settings%s takes the section back as it was read',
    async (path, name) => {
      const section = (await read())[name]
      const again = await put(
        path,
        name === 'acme' ? { ...section, directory_url: `${directory_url}/` } : section,
      )
      expect([again.status, again.text]).toEqual([200, expect.any(String)])
      expect(again.body.data).toEqual(
        name === 'acme' ? { ...section, directory_url: `${directory_url}/` } : section,
      )
      expect((await read()).updated_at[name]).toBe(api.kernel.clock.iso())
      expect(api.events().at(-1)).toMatchObject({
        type: 'settings.updated',
        project_id: null,
        payload: { section: name },
      })
      expect(last()).toMatchObject({ action: 'settings.update', resource_id: name })
    },
  )
})

describe('PUT /api/settings', () => {
  it('changes what is named and nothing else, and holds at once for whoever reads it', async () => {
    expect(
      (await put('', { name: 'Harbour', build_concurrency: 3, audit_retention_days: 30 })).body.data,
    ).toMatchObject({ name: 'Harbour', build_concurrency: 3, event_retention_days: 90 })
    expect(api.services.settings.server()).toMatchObject({
      name: 'Harbour',
      build_concurrency: 3,
      audit_retention_days: 30,
    })
    expect((await put('', { name: 'Portreeve' })).body.data).toMatchObject({
      name: 'Portreeve',
      build_concurrency: 3,
      audit_retention_days: 30,
    })
    expect((await put('', { build_concurrency: null, audit_retention_days: 365 })).body.data).toMatchObject({
      name: 'Portreeve',
      build_concurrency: 1,
      audit_retention_days: 365,
    })
  })
  it.each([
    ['build_concurrency', 0],
    ['build_concurrency', 65],
    ['build_concurrency', 1.5],
    ['build_concurrency', '2'],
    ['audit_retention_days', 0],
    ['audit_retention_days', 3651],
    ['name', ''],
    ['name', 'a\nb'],
    ['name', 'x'.repeat(65)],
    ['releases_kept', 0],
    ['default_memory_bytes', 1],
    ['owners_may_invite', 'yes'],
    ['default_cpus', 0],
  ])('refuses %s = %j', async (field, value) => {
    const refused = await put('', { [field]: value })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, field])
  })
  it('forgets lines of the audit log, events, jobs and deployment logs after the days that were set', async () => {
    await put('', {
      audit_retention_days: 2,
      event_retention_days: 3,
      job_retention_days: 4,
      deployment_log_retention_days: 5,
    })
    const lines = () => api.kernel.db.sql('SELECT count(*) FROM audit_log').pluck().get() as number
    expect(lines()).toBeGreaterThan(0)
    api.fakes.clock.advance(2 * 86_400_000 + 1000)
    expect(await api.services.cleanup()).toMatchObject({ events: 0, jobs: 0 })
    expect(lines()).toBe(0)
    api.fakes.clock.advance(86_400_000)
    expect((await api.services.cleanup()).events).toBeGreaterThan(0)
    await put('', {
      audit_retention_days: 365,
      event_retention_days: 90,
      job_retention_days: 90,
      deployment_log_retention_days: 90,
    })
  })
})

describe('PUT /api/settings/domain', () => {
  it.each([
    ['Apps.Example.COM.', 'apps.example.com'],
    ['bücher.example.com', 'xn--bcher-kva.example.com'],
    ['apps.localhost', 'apps.localhost'],
    ['localhost', 'localhost'],
    ['203.0.113.7.sslip.io', '203.0.113.7.sslip.io'],
    [
      `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
      `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
    ],
  ])('accepts %s', async (given, kept) => {
    expect((await put('/domain', { base_domain: given })).body.data).toEqual({
      dashboard_domain: null,
      base_domain: kept,
    })
    expect((await read()).in_use.base_domain).toBe(kept)
  })
  it.each([
    '',
    ' ',
    '203.0.113.7',
    '[2001:db8::1]',
    '2001:db8::1',
    '2130706433',
    '0x7f.1',
    '127.1',
    'com',
    'co.uk',
    '*.example.com',
    'a.*.example.com',
    'https://example.com',
    'example.com/x',
    'example.com:9000',
    'under_score.example.com',
    '-a.example.com',
    'a-.example.com',
    'a..example.com',
    '.example.com',
    'a b.example.com',
    'exa\nmple.com',
    'user@example.com',
    '%65xample.com',
    '１２７.0.0.1',
    `${'a'.repeat(64)}.example.com`,
    `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(62)}`,
    12,
    {},
    ['a.example.com'],
  ])('refuses %j in both fields', async (value) => {
    for (const field of ['base_domain', 'dashboard_domain']) {
      const refused = await put('/domain', { [field]: value })
      expect([refused.status, refused.body.error.details[0].path]).toEqual([422, field])
    }
  })
  it.each([
    'localhost',
    'panel.localhost',
    'panel',
    'panel.invalid',
    'abc.onion',
    'panel.example',
    '7.0.0.10.in-addr.arpa',
    'github.io',
  ])('refuses %s for the dashboard, which leads nobody here', async (dashboard_domain) => {
    const refused = await put('/domain', { dashboard_domain })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, 'dashboard_domain'])
  })
  it.each(['apps.invalid', 'abc.onion', 'apps.example'])(
    'refuses %s as base domain, which leads nobody here',
    async (base_domain) => {
      const refused = await put('/domain', { base_domain })
      expect([refused.status, refused.body.error.details[0].path]).toEqual([422, 'base_domain'])
    },
  )
  it('keeps the name that is left out', async () => {
    await put('/domain', {
      dashboard_domain: 'portreeve.example.com',
      base_domain: 'apps.example.com',
    })
    expect((await put('/domain', { dashboard_domain: 'other.example.com' })).body.data).toEqual({
      dashboard_domain: 'other.example.com',
      base_domain: 'apps.example.com',
    })
    expect((await put('/domain', { dashboard_domain: null })).body.data).toEqual({
      dashboard_domain: null,
      base_domain: 'apps.example.com',
    })
    expect((await put('/domain', {})).body.data).toEqual({
      dashboard_domain: null,
      base_domain: 'apps.example.com',
    })
    expect((await put('/domain', { base_domain: null })).body.data).toEqual({
      dashboard_domain: null,
      base_domain: null,
    })
  })
  it('moves automatic names and their routes when the base domain changes, and leaves other names alone', async () => {
    await put('/domain', { base_domain: 'old.example.com' })
    api.fakes.git.commit('https://git.example.com/team/shop.git', 'main', {
      'index.html': '<p>hello',
    })
    const app = (
      await api.as('developer').post('/api/apps', {
        name: 'shop',
        git_url: 'https://git.example.com/team/shop.git',
        soak_seconds: 0,
      })
    ).body.data
    expect(app.domain).toBe('shop.old.example.com')
    await api.services.jobs.idle()
    const names = () => [...api.fakes.ingress.routes.values()].flatMap((route) => route.hostnames)
    expect(names()).toEqual(['shop.old.example.com'])
    await put('/domain', { base_domain: 'new.example.com' })
    await api.services.jobs.idle()
    expect((await api.as('developer').get(`/api/apps/${app.id}`)).body.data.domain).toBe(
      'shop.new.example.com',
    )
    expect(names()).toEqual(['shop.new.example.com'])
    await put('/domain', { dashboard_domain: null, base_domain: null })
    await api.services.jobs.idle()
    expect(names()).toEqual(['shop.apps.test'])
  })
  it('never gives one name to the dashboard and to an app', async () => {
    const taken = await put('/domain', { dashboard_domain: 'shop.apps.test' })
    expect([taken.status, taken.body.error.message]).toEqual([
      422,
      'dashboard_domain: is a domain of an app. Remove it there first.',
    ])
    await put('/domain', { dashboard_domain: 'portreeve.apps.test' })
    const clash = await api
      .as('developer')
      .post('/api/apps', { name: 'portreeve', git_url: 'https://git.example.com/team/shop.git' })
    expect([clash.status, clash.body.error.message]).toEqual([
      409,
      expect.stringContaining('the name of the dashboard'),
    ])
    const moved = await put('/domain', {
      dashboard_domain: 'shop.other.example.com',
      base_domain: 'other.example.com',
    })
    expect([moved.status, moved.body.error.message]).toEqual([
      422,
      expect.stringContaining('base_domain: would give apps names that are taken: shop.other.example.com. '),
    ])
    expect((await read()).domain).toEqual({
      dashboard_domain: 'portreeve.apps.test',
      base_domain: null,
    })
    expect(
      (await api.as('developer').get('/api/domains')).body.data.map(
        (domain: { hostname: string }) => domain.hostname,
      ),
    ).toEqual(['shop.apps.test'])
    await put('/domain', { dashboard_domain: null, base_domain: null })
  })
  it("gets a certificate for the dashboard, which goes with its name and is nobody else's to make or to take away", async () => {
    const named = async () =>
      (await api.as('admin').get('/api/certificates')).body.data.map(
        ({ names, status }: { names: string[]; status: string }) => `${names.join()} ${status}`,
      )
    await put('/domain', { dashboard_domain: 'one.example.com' })
    await api.services.jobs.idle()
    expect(await named()).toEqual(['one.example.com active'])
    await expect
      .poll(() => [...api.fakes.ingress.certificates.values()].flatMap(({ names }) => names))
      .toEqual(['one.example.com'])
    const [{ id }] = (await api.as('owner').get('/api/certificates')).body.data
    expect((await api.as('owner').delete(`/api/certificates/${id}?revoke=true`)).status).toBe(409)
    expect((await api.as('developer').post('/api/certificates', { names: ['one.example.com'] })).status).toBe(
      422,
    )
    expect(
      (await api.as('developer').post('/api/certificates', { domain_id: 'dashboard:one.example.com' }))
        .status,
    ).toBe(422)
    await put('/domain', { dashboard_domain: 'two.example.com' })
    await api.services.jobs.idle()
    expect(await named()).toEqual(['two.example.com active'])
    await put('/domain', { dashboard_domain: null, base_domain: null })
    expect(await named()).toEqual([])
    await expect.poll(() => [...api.fakes.ingress.certificates.values()]).toEqual([])
  })
  it('makes the public address, which links of mails and the browser check use', async () => {
    await put('/domain', { dashboard_domain: 'portreeve.example.com' })
    expect((await read()).in_use.public_url).toBe('https://portreeve.example.com')
    expect(api.services.addresses.public_url()).toBe('https://portreeve.example.com')
    await put('/domain', { dashboard_domain: null, base_domain: null })
  })
})

describe('PUT /api/settings/dns-provider', () => {
  it('tries the credentials, keeps what works, and shows a mask', async () => {
    const set = await put('/dns-provider', {
      provider: 'fake',
      config: { zone: 'Example.com', token: 'good' },
    })
    expect([set.status, set.body.data]).toEqual([
      200,
      { provider: 'fake', config: { zone: 'example.com', token: MASK } },
    ])
    expect((await read()).dns_provider).toEqual(set.body.data)
    expect(api.services.settings.dnsProvider()).toEqual({
      provider: 'fake',
      config: { zone: 'example.com', token: 'good' },
    })
    expect(JSON.parse(last().after)).toMatchObject({ replaced_secrets: ['config.token'] })
    expect(JSON.stringify([rawRow('dns_provider'), last(), api.events()])).not.toContain('good')
    expect(rawRow('dns_provider')!.secrets).toMatch(/^v1\./)
  })
  it('refuses what the provider refuses with its sentence, and changes nothing', async () => {
    const refused = await put('/dns-provider', {
      provider: 'fake',
      config: { zone: 'example.com', token: 'bad' },
    })
    expect([refused.status, refused.body.error.message]).toEqual([422, 'config: The token was refused.'])
    expect(api.services.settings.dnsProvider()?.config.token).toBe('good')
  })
  it.each([{}, { token: MASK }])('keeps the stored secret when %j is sent', async (sent) => {
    expect(
      (await put('/dns-provider', { provider: 'fake', config: { zone: 'example.org', ...sent } })).status,
    ).toBe(200)
    expect(api.services.settings.dnsProvider()?.config).toEqual({
      zone: 'example.org',
      token: 'good',
    })
    expect(JSON.parse(last().after)).not.toHaveProperty('replaced_secrets')
  })
  it.each([
    [{ provider: 'route66' }, 'provider'],
    [{ provider: 'fake', config: { zone: null } }, 'config.zone'],
    [{ provider: 'fake', config: { token: null } }, 'config.token'],
    [{ provider: 'fake', config: { zone: 'example.com', token: 1 } }, 'config.token'],
    [{ provider: 'fake', config: { zone: 'example.com', surprise: 1 } }, 'config.surprise'],
    [{ provider: 'fake', config: 'text' }, 'config'],
  ])('refuses %j', async (body, path) => {
    const refused = await put('/dns-provider', body)
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, path])
  })
  it('keeps the fields of the same provider that are left out', async () => {
    expect((await put('/dns-provider', { config: { zone: 'example.net' } })).body.data).toEqual({
      provider: 'fake',
      config: { zone: 'example.net', token: MASK },
    })
    expect((await put('/dns-provider', {})).body.data).toEqual({
      provider: 'fake',
      config: { zone: 'example.net', token: MASK },
    })
    expect(api.services.settings.dnsProvider()?.config).toEqual({
      zone: 'example.net',
      token: 'good',
    })
  })
  it('sends a stored secret to no other provider and to no other server', async () => {
    const says = async (body: object) => (await put('/dns-provider', body)).body.error?.message
    expect(await says({ provider: 'elsewhere', config: { token: MASK } })).toContain(
      'config.token: must be sent again',
    )
    await put('/dns-provider', {
      provider: 'elsewhere',
      config: { server: 'one.example.com', token: 'canary' },
    })
    expect(asked).toEqual([{ server: 'one.example.com', token: 'canary' }])
    for (const config of [
      { server: 'two.example.com' },
      { server: 'two.example.com', token: MASK },
      { server: null },
    ])
      expect(await says({ config })).toContain('config.token: must be sent again')
    expect(asked).toHaveLength(1)
    await put('/dns-provider', { provider: 'fake', config: { zone: 'example.net', token: 'good' } })
  })
  it('loses no secret of two that are sent at once: the second is told', async () => {
    await put('/dns-provider', { provider: 'elsewhere', config: { token: 'before' } })
    const before = asked.length
    let release = () => undefined as void
    held = new Promise((resolve) => {
      release = resolve
    })
    const both = ['one', 'two'].map((token) => put('/dns-provider', { config: { token } }))
    await expect.poll(() => asked.length).toBe(before + 2)
    release()
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 409])
    held = undefined
    await put('/dns-provider', { provider: 'fake', config: { zone: 'example.net', token: 'good' } })
  })
  it('forgets provider and secret with null; a mask then stands for nothing', async () => {
    expect((await put('/dns-provider', { provider: null })).body.data).toEqual({
      provider: null,
      config: {},
    })
    expect(api.services.settings.dnsProvider()).toBeNull()
    expect(rawRow('dns_provider')!.secrets).toBeNull()
    expect(
      (
        await put('/dns-provider', {
          provider: 'fake',
          config: { zone: 'example.com', token: MASK },
        })
      ).body.error.message,
    ).toContain('config.token: is a mask')
    expect((await put('/dns-provider', { config: { zone: 'example.com' } })).body.error.details[0].path).toBe(
      'provider',
    )
    expect((await put('/dns-provider', {})).body.data).toEqual({ provider: null, config: {} })
  })
})

describe('PUT /api/settings/dns', () => {
  it('keeps the fields that are left out', async () => {
    const set = { resolvers: ['9.9.9.9'], public_addresses: ['203.0.113.7'], wildcard: true }
    await put('/dns', set)
    expect((await put('/dns', { public_addresses: ['203.0.113.8'] })).body.data).toEqual({
      ...set,
      public_addresses: ['203.0.113.8'],
    })
    expect((await put('/dns', { wildcard: false, public_addresses: [] })).body.data).toEqual({
      resolvers: ['9.9.9.9'],
      public_addresses: [],
      wildcard: false,
    })
    expect((await put('/dns', { resolvers: [] })).body.data.resolvers).toEqual([])
  })
  it.each([
    ['public_addresses.0', { public_addresses: ['0.0.0.0'] }],
    ['public_addresses.1', { public_addresses: ['203.0.113.7', '224.0.0.1'] }],
    ['public_addresses.0', { public_addresses: ['::'] }],
    ['public_addresses', { public_addresses: ['203.0.113.7', '203.0.113.7'] }],
    ['resolvers', { resolvers: ['9.9.9.9', '9.9.9.9'] }],
  ])('refuses at %s what no client can connect to, and the same twice: %o', async (path, change) => {
    const answer = await put('/dns', change)
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, path])
    expect(api.services.settings.dns()).toEqual({
      resolvers: [],
      public_addresses: [],
      wildcard: false,
    })
  })
  it('asks each resolver one question before it is kept', async () => {
    const asked = api.fakes.dns.questions.length
    const set = await put('/dns', {
      resolvers: ['9.9.9.9', '[2620:fe::fe]:53', '149.112.112.112:53'],
      public_addresses: ['203.0.113.7', '2001:db8::7'],
      wildcard: true,
    })
    expect(set.body.data).toEqual({
      resolvers: ['9.9.9.9', '[2620:fe::fe]:53', '149.112.112.112:53'],
      public_addresses: ['203.0.113.7', '2001:db8::7'],
      wildcard: true,
    })
    expect(api.services.settings.dns()).toEqual(set.body.data)
    expect(api.fakes.dns.questions.slice(asked).map(({ resolver, name }) => [resolver, name])).toEqual(
      set.body.data.resolvers.map((resolver: string) => [resolver, 'apps.test']),
    )
  })
  it.each(['refused', 'servfail'] as const)(
    'takes a resolver that answers %s, as one does that knows its own zones only',
    async (reason) => {
      api.fakes.dns.fail('apps.test', reason, '9.9.9.11')
      expect((await put('/dns', { resolvers: ['9.9.9.11'] })).body.data.resolvers).toEqual(['9.9.9.11'])
      await put('/dns', { resolvers: ['9.9.9.9', '[2620:fe::fe]:53', '149.112.112.112:53'] })
    },
  )
  it.each(['timeout', 'unreachable', 'unusable'] as const)(
    'refuses one that does not answer (%s), naming it, and keeps what was set',
    async (reason) => {
      api.fakes.dns.fail('apps.test', reason, '9.9.9.10')
      const refused = await put('/dns', { resolvers: ['9.9.9.9', '9.9.9.10'] })
      expect([refused.status, refused.body.error.message]).toEqual([422, 'resolvers.1: was made to fail.'])
      expect(api.services.settings.dns().resolvers).toHaveLength(3)
    },
  )
  it.each([
    ['resolvers', 'dns.example.com'],
    ['resolvers', ''],
    ['resolvers', '9.9.9.9:0'],
    ['resolvers', '9.9.9.9:65536'],
    ['resolvers', '9.9.9'],
    ['resolvers', '9.9.9.9/32'],
    ['resolvers', '[9.9.9.9]:53'],
    ['resolvers', '::1%eth0'],
    ['resolvers', 53],
    ['public_addresses', 'example.com'],
    ['public_addresses', '203.0.113.7:80'],
    ['public_addresses', '0x7f000001'],
  ])('refuses %s = [%j]', async (field, value) => {
    const refused = await put('/dns', { [field]: [value] })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, `${field}.0`])
  })
})

describe('PUT /api/settings/acme', () => {
  const eab = { kid: 'kid-1', hmac_key: 'bG9uZyBlbm91Z2g' }
  it('reads the directory first, and gives the opened key to whoever asks for certificates', async () => {
    const set = await put('/acme', {
      directory_url,
      email: 'ops@example.com',
      eab,
      key_type: 'rsa',
    })
    expect([set.status, set.body.data]).toEqual([
      200,
      {
        directory_url,
        email: 'ops@example.com',
        eab: { kid: 'kid-1', hmac_key: MASK },
        key_type: 'rsa',
        challenge: 'http-01',
      },
    ])
    expect(api.services.settings.acme()).toEqual({
      directory_url,
      email: 'ops@example.com',
      eab,
      key_type: 'rsa',
      challenge: 'http-01',
    })
    expect(JSON.stringify([rawRow('acme'), last(), api.events()])).not.toContain(eab.hmac_key)
  })
  it('keeps the stored key for the same directory and account, and sends it nowhere else', async () => {
    expect((await put('/acme', { directory_url, eab: { kid: 'kid-1' } })).status).toBe(200)
    expect(api.services.settings.acme().eab).toEqual(eab)
    for (const changed of [
      { directory_url: `${directory_url}/other`, eab: { kid: 'kid-1', hmac_key: MASK } },
      { directory_url, eab: { kid: 'kid-2' } },
    ]) {
      expect((await put('/acme', changed)).body.error.message).toContain('eab.hmac_key: must be sent again')
    }
  })
  it('keeps the fields that are left out, and its key with them only for the same directory', async () => {
    expect((await put('/acme', { key_type: 'ecdsa' })).body.data).toMatchObject({
      directory_url,
      email: 'ops@example.com',
      eab: { kid: 'kid-1', hmac_key: MASK },
      key_type: 'ecdsa',
    })
    expect(api.services.settings.acme().eab).toEqual(eab)
    const moved = await put('/acme', { directory_url: `${directory_url}/other` })
    expect([moved.status, moved.body.error.message]).toEqual([
      422,
      expect.stringContaining('eab.hmac_key: must be sent again'),
    ])
    expect((await put('/acme', { email: null })).body.data).toMatchObject({
      email: null,
      key_type: 'ecdsa',
    })
  })
  it('changes while the authority cannot be reached, what it has no say in and what is not to be tested', async () => {
    const away = 'https://acme.invalid/directory'
    const sent = { directory_url: away, eab: null }
    expect((await put('/acme', sent)).status).toBe(422)
    expect((await put('/acme', { ...sent, skip_test: true })).body.data).toMatchObject(sent)
    const changed = await put('/acme', { email: 'new@example.com', challenge: 'dns-01', directory_url: away })
    expect([changed.status, changed.body.data.email]).toEqual([200, 'new@example.com'])
    expect((await put('/acme', { directory_url: 'http://acme.invalid', skip_test: true })).status).toBe(422)
    await put('/acme', { directory_url, eab, challenge: 'http-01' })
  })
  it('loses no change of two that are made at once: the second is told while the first is tested', async () => {
    const both = await Promise.all([
      put('/acme', { directory_url: `${directory_url}?first`, eab: null }),
      put('/acme', { directory_url: `${directory_url}?second`, eab: null }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const free = await Promise.all([
      put('/acme', { email: 'ada@example.com' }),
      put('/acme', { challenge: 'dns-01' }),
    ])
    expect(free.map(({ status }) => status)).toEqual([200, 200])
    expect((await put('/acme', { challenge: 'http-01' })).body.data).toMatchObject({
      email: 'ada@example.com',
      challenge: 'http-01',
    })
  })
  it.each(['http://ca.example.com/directory', 'file:///etc/passwd', 'ca.example.com/directory'])(
    'refuses %s: a directory is asked over HTTPS alone',
    async (directory_url) => {
      const { status, body } = await put('/acme', { directory_url, eab: null })
      expect([status, body.error.message]).toEqual([
        422,
        'directory_url: must be an address that begins with https://.',
      ])
    },
  )
  it('refuses what is no directory, and one that asks for a binding when none is set', async () => {
    // One that is not set already: what does not change is not tested.
    const other = `${directory_url}?other`
    const says = async (body: object) => {
      const {
        status,
        body: { error },
      } = await put('/acme', body)
      return `${status} ${error?.message}`
    }
    answer = () => ({ status: 200, body: '<html>' })
    expect(await says({ directory_url: other })).toContain(
      '422 directory_url: does not answer as an ACME directory (HTTP 200)',
    )
    answer = (base) => ({ ...wellFormed(base), status: 500 })
    expect(await says({ directory_url: other })).toContain(
      '422 directory_url: does not answer as an ACME directory (HTTP 500)',
    )
    for (const inward of ['newNonce', 'newAccount', 'newOrder']) {
      answer = (base) => ({
        status: 200,
        body: JSON.stringify({
          ...JSON.parse(wellFormed(base).body),
          [inward]: 'https://10.0.0.1/',
        }),
      })
      expect([inward, await says({ directory_url: other })]).toEqual([
        inward,
        expect.stringContaining('422 directory_url: 10.0.0.1 is or leads to an address that is not public'),
      ])
    }
    answer = wellFormed
    meta = { externalAccountRequired: true }
    expect(await says({ directory_url: other, eab: null })).toContain(
      '422 eab: is required by this authority',
    )
    meta = {}
    expect(await says({ directory_url: other, eab: { kid: 'another' } })).toContain('422 eab.hmac_key: ')
  })
  it.each([
    ['email', 'no address'],
    ['email', 'a@b@c'],
    ['email', 'a@b>\r\nx'],
    ['key_type', 'dsa'],
    ['challenge', 'tls-alpn-01'],
    ['directory_url', ''],
    ['eab', { kid: '' }],
    ['eab', {}],
  ])('refuses %s = %j', async (field, value) => {
    const refused = await put('/acme', { directory_url, [field]: value })
    expect([refused.status, refused.body.error.details[0].path.split('.')[0]]).toEqual([422, field])
  })
})
