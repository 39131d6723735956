import { describe, expect, it } from 'vitest'
import {
  add,
  addProven,
  addresses,
  api,
  createApp,
  routeOf,
  settled,
  textOf,
  typesSince,
  verify,
  useDomains,
} from './harness.ts'

useDomains()

describe('www', () => {
  it.each([
    ['example.com', 'to_apex', 'example.com', 'www.example.com'],
    ['www.example.com', 'to_www', 'www.example.com', 'example.com'],
    ['example.com', 'to_www', 'www.example.com', 'example.com'],
  ])(
    '%s with %s goes with further paths of %s, whichever comes first, and with none of %s',
    async (hostname, www, served, alias) => {
      for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
      const blog = await createApp('blog')
      const path = await addProven(served, { path: '/blog' }, blog)
      const pair = await addProven(hostname, { www })
      expect([pair.status, path.status]).toEqual(['active', 'active'])
      expect([routeOf(pair.id), routeOf(path.id)]).toMatchObject([
        { hostnames: [served], aliases: { [alias]: served } },
        { hostnames: [served], path: '/blog', app_id: blog },
      ])
      expect((await add(served, { path: '/later' }, blog)).status).toBe(201)
      expect((await add(served, { path: '/other', ssl_mode: 'off' }, blog)).body.error.message).toMatch(
        /^ssl_mode: must be acme or left out/,
      )
      for (const [{ id }, ssl_mode] of [
        [path, 'self_signed'],
        [pair, 'external'],
      ] as const) {
        await api.as('admin').put(`/api/domains/${id}/ssl-mode`, { ssl_mode })
        expect(
          await Promise.all(
            [pair, path].map(
              async (one) => (await api.as('admin').get(`/api/domains/${one.id}`)).body.data.ssl_mode,
            ),
          ),
        ).toEqual([ssl_mode, ssl_mode])
      }
      const refused = await add(alias, { path: '/lost' }, blog)
      expect([refused.status, refused.body.error.message]).toEqual([
        409,
        `Everything at ${alias} is sent to ${served} by its www rule, so further paths belong to ${served}. Add them there.`,
      ])
      const turned = await api
        .as('developer')
        .put(`/api/domains/${pair.id}`, { www: www === 'to_www' ? 'to_apex' : 'to_www' })
      expect([turned.status, turned.body.error.message]).toEqual([
        409,
        expect.stringContaining(`further paths belong to ${alias}`),
      ])
    },
  )
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
    expect((await api.as('viewer').get(`/api/domains/${id}`)).body.data).toMatchObject({
      status: 'active',
      verification: { proven_by: 'txt' },
    })
  })
  it('needs both names proven before it is turned on', async () => {
    const domain = await addProven('www.example.com')
    const refused = await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_apex' })
    expect([refused.status, refused.body.error.message]).toEqual([
      422,
      expect.stringContaining('example.com is not in DNS (NXDOMAIN)'),
    ])
    api.fakes.dns.set('example.com', { A: addresses })
    expect((await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_apex' })).status).toBe(200)
  })
  it('does not take a name that is a domain of its own', async () => {
    await addProven('www.example.com')
    for (const name of ['other.com', 'www.other.com']) api.fakes.dns.set(name, { A: addresses })
    await addProven('other.com', { www: 'to_www' })
    for (const [hostname, rules] of [
      ['example.com', { www: 'to_www' }],
      ['www.other.com', {}],
    ] as const) {
      const { status, body } = await add(hostname, rules)
      expect([hostname, status, body.error.message]).toEqual([
        hostname,
        409,
        expect.stringContaining('belongs to another www rule of the project'),
      ])
    }
  })
  it('sends away no name that has further paths', async () => {
    const domain = await addProven('example.com')
    await addProven('example.com', { path: '/blog' })
    api.fakes.dns.set('www.example.com', { A: addresses })
    const { status, body } = await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_www' })
    expect([status, body.error.message]).toEqual([
      409,
      expect.stringContaining('further paths belong to www.example.com'),
    ])
  })
})

describe('the certificate mode belongs to the name, since TLS knows no path', () => {
  const modes = async () =>
    (await api.as('viewer').get('/api/domains')).body.data
      .filter((domain: { hostname: string }) => domain.hostname === 'shop.example.com')
      .map((domain: { path: string; ssl_mode: string }) => [domain.path, domain.ssl_mode])
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
    expect(
      (await api.as('developer').put(`/api/domains/${two.id}/ssl-mode`, { ssl_mode: 'external' })).body.data,
    ).toMatchObject({ id: two.id, ssl_mode: 'external' })
    expect(await modes()).toEqual([
      ['/two', 'external'],
      ['/', 'external'],
    ])
    expect(typesSince(before)).toEqual(['domain.updated', 'domain.updated'])
    expect((await api.as('admin').get(`/api/audit-logs?resource=${root.id}`)).body.data[0]).toMatchObject({
      action: 'domain.ssl_mode',
    })
  })
  it('the domains of other names keep theirs', async () => {
    const shop = await addProven('shop.example.com', { ssl_mode: 'off' })
    const blog = await addProven('blog.example.com', { ssl_mode: 'off' })
    await api.as('developer').put(`/api/domains/${shop.id}/ssl-mode`, { ssl_mode: 'external' })
    expect((await api.as('viewer').get(`/api/domains/${blog.id}`)).body.data.ssl_mode).toBe('off')
  })
})

it('a look that began before the other name was asked for proves neither of the two', async () => {
  const { ask } = api.fakes.dns
  const held: (() => void)[] = []
  api.fakes.dns.set('www.victim.example.org', { A: addresses })
  api.fakes.dns.ask = async (...asked) => {
    await new Promise<void>((resolve) => held.push(resolve))
    return ask(...asked)
  }
  const { id } = (await add('www.victim.example.org')).body.data
  await expect.poll(() => held.length).toBeGreaterThan(0)
  await api.as('admin').put(`/api/domains/${id}`, { www: 'to_www' })
  api.fakes.dns.ask = ask
  held.forEach((answer) => answer())
  await settled()
  expect((await api.as('admin').get(`/api/domains/${id}`)).body.data).toMatchObject({
    status: 'pending',
    verification: { message: expect.stringContaining('victim.example.org is not in DNS') },
  })
})
