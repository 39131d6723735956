import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Caller, CALLERS, createTestApi, type TestApi } from '#test/support/api'
import { createTestAuthority, type TestAuthority } from '#test/support/chains'

let api: TestApi
let authority: TestAuthority
let app_id: string
beforeAll(async () => {
  authority = createTestAuthority()
  api = await createTestApi()
  api.fakes.clock.set(new Date(Date.now() + 3_600_000).toISOString())
  const url = 'https://git.example.com/team/app.git'
  api.fakes.git.commit(url, 'main', { 'index.html': '<p>hello' })
  app_id = (await api.as('owner').post('/api/apps', { name: 'shop', git_url: url, soak_seconds: 0 })).body
    .data.id
  await api.services.jobs.idle()
})
afterAll(async () => {
  await api.close()
  authority.close()
})

/** A domain that is proven by its TXT record. */
async function provenDomain(hostname: string, changes: object = {}): Promise<string> {
  const { body } = await api.as('owner').post('/api/domains', { app_id, hostname, ...changes })
  const record = body.data.dns_records.find(({ type }: { type: string }) => type === 'TXT')
  api.fakes.dns.set(record.name, { TXT: [record.value] })
  const verified = await api.as('owner').post('/api/domains/verify', { domain_id: body.data.id })
  expect(verified.body.data.status).toMatch(/verified|active/)
  return body.data.id as string
}
const settle = async () => {
  await api.services.jobs.idle()
  await api.services.certificates.sync()
}

describe('a domain with the SSL mode acme', () => {
  it('gets its certificate by itself once it is proven, and force_https holds from then on; off takes it back', async () => {
    const id = await provenDomain('auto.example.com', { ssl_mode: 'acme', force_https: true })
    await settle()
    const [certificate] = (await api.as('viewer').get('/api/certificates')).body.data
    expect(certificate).toMatchObject({
      names: ['auto.example.com'],
      status: 'active',
      source: 'acme',
      hostnames: ['auto.example.com'],
    })
    await expect.poll(() => api.fakes.ingress.routes.get(id)?.force_https).toBe(true)
    expect((await api.as('viewer').get(`/api/domains/${id}`)).body.data.url).toMatch(/^https:/)
    await api.as('owner').put(`/api/domains/${id}/ssl-mode`, { ssl_mode: 'off' })
    await settle()
    expect(api.fakes.ingress.certificates.size).toBe(0)
    await expect.poll(() => api.fakes.ingress.routes.get(id)?.force_https).toBeUndefined()
    expect((await api.as('owner').delete(`/api/domains/${id}`)).status).toBe(200)
    await settle()
    expect((await api.as('viewer').get('/api/certificates')).body.data).toEqual([])
  })
})

it('one that the edge does not take at its start is not said to be shown, and handed over by the next pass', async () => {
  const id = await provenDomain('hiccup.example.com', { ssl_mode: 'acme' })
  await settle()
  const [certificate] = (await api.as('viewer').get('/api/certificates')).body.data
  api.fakes.ingress.refuseNext(certificate.id)
  await api.services.deployments.reconciler.applyEdge()
  const shown = async () =>
    (await api.as('viewer').get(`/api/certificates/${certificate.id}`)).body.data.hostnames
  expect(await shown()).toEqual([])
  await api.services.certificates.pass()
  expect(api.fakes.ingress.certificates.has(certificate.id)).toBe(true)
  expect(await shown()).toEqual(['hiccup.example.com'])
  await api.as('owner').delete(`/api/domains/${id}`)
  await settle()
})

describe('a name that two apps share by their paths', () => {
  it.each(['acme', 'self_signed'])(
    'keeps its certificate (%s) when the domain goes that it was made for, at once and when the app goes',
    async (ssl_mode) => {
      const hostname = `shared-${ssl_mode.replace('_', '-')}.example.com`
      const served = () =>
        [...api.fakes.ingress.certificates.values()]
          .filter(({ names }) => names.includes(hostname))
          .map(({ id }) => id)
      const first = await provenDomain(hostname, { ssl_mode })
      const other = (
        await api
          .as('admin')
          .post('/api/apps', { name: `other-${ssl_mode.replace('_', '-')}`, source: 'upload' })
      ).body.data.id
      await provenDomain(hostname, { path: '/of-the-other', app_id: other })
      const second = await provenDomain(hostname, { path: '/two' })
      await settle()
      const [id] = served()
      expect(id).toBeDefined()
      await api.as('owner').delete(`/api/domains/${first}`)
      await settle()
      expect(served()).toEqual([id])
      await api.as('admin').delete(`/api/apps/${other}`)
      await settle()
      await api.services.certificates.pass()
      expect(served()).toEqual([id])
      await api.as('owner').delete(`/api/domains/${second}`)
      await settle()
      expect(served()).toEqual([])
      expect(
        (await api.as('viewer').get('/api/certificates?per_page=100')).body.data.filter(
          ({ names }: { names: string[] }) => names.includes(hostname),
        ),
      ).toEqual([])
    },
  )
})

describe('an app that moves to another project', () => {
  const served = () =>
    Object.fromEntries(
      [...api.fakes.ingress.certificates.values()].flatMap(({ id, names }) =>
        names.map((name) => [name, id]),
      ),
    )
  const uploaded = async (names: string[]) => {
    const key = authority.key()
    return (
      await api.as('admin').post('/api/certificates', {
        certificate: `${authority.leaf(key, names)}${authority.intermediate}`,
        private_key: key,
      })
    ).body.data.id as string
  }
  it('takes the certificates along that its domains alone use; the edge shows them all the while', async () => {
    const kept = api.services.http.default_project()
    const moving = (await api.as('admin').post('/api/apps', { name: 'moving', source: 'upload' })).body.data
      .id
    for (const [hostname, ssl_mode, app] of [
      ['moved.example.org', 'acme', moving],
      ['bought.example.org', 'custom', moving],
      ['mixed.example.com', 'custom', moving],
      ['stays.example.net', 'custom', app_id],
    ] as const)
      await provenDomain(hostname, { ssl_mode, app_id: app })
    const bought = await uploaded(['bought.example.org'])
    const mixed = await uploaded(['mixed.example.com', 'stays.example.net'])
    await settle()
    const before = served()
    const project_id = (await api.as('admin').post('/api/projects', { name: 'new home' })).body.data.id
    expect((await api.as('admin').post(`/api/apps/${moving}/move`, { project_id })).status).toBe(200)
    await settle()
    expect(served()).toMatchObject({
      'moved.example.org': before['moved.example.org'],
      'bought.example.org': bought,
      'stays.example.net': mixed,
    })
    // What others use as well stays with them, and is not shown for a name of another project.
    expect(served()['mixed.example.com']).toBeUndefined()
    const homes = Object.fromEntries(
      (await api.as('admin').get('/api/certificates?per_page=100')).body.data.map(
        (one: { id: string; project_id: string }) => [one.id, one.project_id],
      ),
    )
    expect([homes[before['moved.example.org']!], homes[bought], homes[mixed]]).toEqual([
      project_id,
      project_id,
      kept,
    ])
    for (const { id, kind } of (await api.as('admin').get(`/api/domains?app_id=${moving}`)).body.data)
      if (kind !== 'automatic') await api.as('admin').delete(`/api/domains/${id}`)
  })
})

describe('POST /api/certificates', () => {
  const key = () => authority.key()
  const theirs = () => api.services.http.default_project()
  it.each<[string, Caller, () => object, number, RegExp | undefined, number]>([
    [
      'names that are not verified',
      'developer',
      () => ({ names: ['nobody.example.com'] }),
      422,
      /^names: nobody\.example\.com is not a verified domain/,
      0,
    ],
    [
      'a wildcard without a DNS provider',
      'developer',
      () => ({ names: ['*.table.example.com'] }),
      422,
      /^names: /,
      0,
    ],
    [
      'an unknown domain',
      'developer',
      () => ({ domain_id: 'dom_00000000000000000000' }),
      404,
      /There is no such domain/,
      0,
    ],
    ['nothing', 'developer', () => ({}), 422, /^names: is required/, 0],
    [
      'a chain without a key',
      'developer',
      () => ({ certificate: authority.intermediate }),
      422,
      /^private_key: is required/,
      0,
    ],
    [
      'a key without a chain',
      'developer',
      () => ({ private_key: key() }),
      422,
      /^certificate: is required/,
      0,
    ],
    [
      'names beside a chain',
      'developer',
      () => ({
        names: ['table.example.com'],
        certificate: authority.intermediate,
        private_key: key(),
      }),
      422,
      /^names: cannot be given/,
      0,
    ],
    [
      'text that is no PEM',
      'developer',
      () => ({ certificate: 'AAAA', private_key: key() }),
      422,
      /^certificate: must be PEM/,
      0,
    ],
    [
      'a megabyte of chain',
      'developer',
      () => ({
        certificate: `-----BEGIN CERTIFICATE-----\n${'A'.repeat(900_000)}`,
        private_key: key(),
      }),
      422,
      /^certificate: is longer than/,
      0,
    ],
    [
      'a body above the limit',
      'developer',
      () => ({ certificate: 'A'.repeat(1_100_000) }),
      413,
      undefined,
      0,
    ],
    ['a name with a port', 'developer', () => ({ names: ['table.example.com:443'] }), 422, /^names\.0: /, 0],
    ['a name with one label', 'developer', () => ({ names: ['localhost'] }), 422, /^names\.0: /, 0],
    ['an address', 'developer', () => ({ names: ['127.0.0.1'] }), 422, /^names\.0: is an IP address/, 0],
    [
      'an international name, which is looked for in ASCII',
      'developer',
      () => ({ names: ['MÜNCHEN.example.com'] }),
      422,
      /^names: xn--mnchen-3ya\.example\.com is not a verified domain/,
      0,
    ],
    ['a list', 'developer', () => [], 422, /^body: must be an object\./, 0],
    ['a viewer', 'viewer', () => ({ names: ['table.example.com'] }), 403, undefined, 0],
    ['no project', 'outsider', () => ({ names: ['table.example.com'] }), 422, /^project_id: is required/, 0],
    [
      'a stranger to the project',
      'outsider',
      () => ({ names: ['table.example.com'], project_id: theirs() }),
      404,
      /There is no such project/,
      0,
    ],
    [
      'a key of an authority’s certificate',
      'developer',
      () => {
        const pem = key()
        return { certificate: authority.leaf(pem, ['table.example.com']), private_key: pem }
      },
      201,
      undefined,
      1,
    ],
  ])('with %s as %s', async (_what, caller, body, status, message, events) => {
    const before = api.services.events.latest()
    const answer = await api.as(caller).post('/api/certificates', body())
    expect([answer.status, answer.body.error?.message ?? '']).toEqual([
      status,
      message ? expect.stringMatching(message) : expect.any(String),
    ])
    expect(api.events(before).filter(({ type }) => type.startsWith('certificate.'))).toHaveLength(events)
  })
  it('issues for a verified domain, and answers at once', async () => {
    const domain_id = await provenDomain('asked.example.com', { ssl_mode: 'off' })
    const made = await api.as('developer').post('/api/certificates', { domain_id, key_type: 'rsa' })
    expect([made.status, made.body.data.status, made.body.data.names]).toEqual([
      201,
      'issuing',
      ['asked.example.com'],
    ])
    expect(
      (await api.as('developer').post('/api/certificates', { names: ['asked.example.com'] })).status,
    ).toBe(409)
    await settle()
    const path = `/api/certificates/${made.body.data.id}`
    expect((await api.as('viewer').get(path)).body.data).toMatchObject({
      status: 'active',
      key_type: 'rsa',
      hostnames: [],
    })
    expect((await api.as('viewer').post(`${path}/renew`)).status).toBe(403)
    expect((await api.as('developer').post(`${path}/renew`)).body.data.status).toBe('issuing')
    await settle()
    expect((await api.as('viewer').delete(path)).status).toBe(403)
    expect((await api.as('developer').delete(path)).body.data).toEqual({
      id: made.body.data.id,
      deleted: true,
    })
    expect((await api.as('developer').get(path)).status).toBe(404)
    const actions = api.kernel.db
      .sql('SELECT action FROM audit_log WHERE resource_id = ? ORDER BY seq')
      .pluck()
      .all(made.body.data.id)
    expect(actions).toEqual(['certificate.create', 'certificate.renew', 'certificate.delete'])
  })
})

describe('T6: the private key of a certificate', () => {
  it('is in no answer to anybody, no event, no audit line, no log and, in clear, not in the database', async () => {
    const pem = authority.key()
    const uploaded = await api.as('developer').post('/api/certificates', {
      certificate: authority.leaf(pem, ['canary.example.com']),
      private_key: pem,
    })
    const csr = await api.as('developer').post('/api/certificates/csr', { names: ['canary.example.com'] })
    await provenDomain('canary.example.com', { ssl_mode: 'acme' })
    await settle()
    const rows = api.kernel.db.sql('SELECT id, private_key, next_key FROM certificates').all() as Record<
      'id' | 'private_key' | 'next_key',
      string | null
    >[]
    const columns = ['private_key', 'next_key'] as const
    const keys = rows.flatMap((row) =>
      columns.flatMap((column) =>
        row[column] ? [api.kernel.secrets.open(row[column], `certificates/${column}/${row.id}`)] : [],
      ),
    )
    const account = api.kernel.db.sql('SELECT directory_url, private_key FROM acme_accounts').get() as {
      directory_url: string
      private_key: string
    }
    keys.push(
      api.kernel.secrets.open(account.private_key, `acme_accounts/private_key/${account.directory_url}`),
    )
    const canaries = keys.map((text) => text.split('\n')[2]!)
    expect(canaries.length).toBeGreaterThanOrEqual(4)
    expect(canaries.every((text) => text.length > 30)).toBe(true)
    const answers: string[] = [uploaded.text, csr.text]
    for (const caller of Object.keys(CALLERS) as Caller[]) {
      for (const path of [
        '/api/certificates?per_page=100',
        '/api/audit-logs?per_page=100',
        '/api/system/jobs?per_page=100',
        '/api/domains',
        '/api/search?q=canary',
        ...rows.map(({ id }) => `/api/certificates/${id}`),
      ])
        answers.push((await api.as(caller).get(path)).text)
    }
    const places = [
      ...answers,
      JSON.stringify(api.events()),
      JSON.stringify(api.kernel.db.sql('SELECT * FROM audit_log').all()),
      JSON.stringify(api.kernel.lines),
      api.kernel.db.raw.serialize().toString('latin1'),
    ]
    for (const canary of canaries) expect(places.filter((text) => text.includes(canary)).length).toBe(0)
    expect(places.some((text) => text.includes('canary.example.com'))).toBe(true)
  })
})
