import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Dns } from '#server/platform/dns/dns'
import { createFakeDns, type FakeDns } from '#server/platform/dns/fake'
import { createDnsResolver } from '#server/platform/dns/resolver'
import { startDnsServer, type TestDnsServer } from '#test/support/dns-server'

interface World {
  dns: Dns
  resolver: string
  set: FakeDns['set']
  fail: FakeDns['fail']
}
let server: TestDnsServer
beforeAll(async () => {
  server = await startDnsServer()
})
afterAll(() => server.close())

/** What no resolver answers is waited for so long; for answers that come, as long as a machine may stall. */
const SHORT_MS = 300
const worlds: Record<string, (timeout_ms?: number) => World> = {
  'the fake': () => {
    const dns = createFakeDns()
    return { dns, resolver: '192.0.2.53', set: dns.set, fail: dns.fail }
  },
  'real resolvers over UDP': (timeout_ms = 15_000) => ({
    dns: createDnsResolver({ timeout_ms, tries: 1 }),
    resolver: server.address,
    set: server.set,
    fail: server.fail,
  }),
}

describe.each(Object.entries(worlds))('DNS through %s', (_name, build) => {
  it('finds addresses, aliases and texts', async () => {
    const { dns, resolver, set } = build()
    set('shop.example.com', {
      A: ['192.0.2.10', '192.0.2.11'],
      AAAA: ['2001:db8::5'],
      TXT: ['first', 'second'],
    })
    expect(await dns.ask('shop.example.com', 'A', resolver)).toEqual({
      outcome: 'found',
      values: ['192.0.2.10', '192.0.2.11'],
    })
    expect(await dns.ask('shop.example.com', 'AAAA', resolver)).toEqual({
      outcome: 'found',
      values: ['2001:db8::5'],
    })
    expect(await dns.ask('shop.example.com', 'TXT', resolver)).toEqual({
      outcome: 'found',
      values: ['first', 'second'],
    })
  })
  it('follows aliases to the addresses, and tells an alias by itself', async () => {
    const { dns, resolver, set } = build()
    set('www.example.com', { CNAME: ['edge.example.net'] })
    set('edge.example.net', { A: ['192.0.2.20'] })
    expect(await dns.ask('www.example.com', 'A', resolver)).toEqual({
      outcome: 'found',
      values: ['192.0.2.20'],
    })
    expect(await dns.ask('www.example.com', 'CNAME', resolver)).toEqual({
      outcome: 'found',
      values: ['edge.example.net'],
    })
  })
  it('tells a name that is not there from one without such a record', async () => {
    const { dns, resolver, set } = build()
    set('text.example.com', { TXT: ['only'] })
    expect(await dns.ask('nothing.example.com', 'A', resolver)).toEqual({ outcome: 'missing' })
    expect(await dns.ask('text.example.com', 'A', resolver)).toEqual({ outcome: 'empty' })
  })
  it('reads a text of several parts as one', async () => {
    const { dns, resolver, set } = build()
    const long = 'x'.repeat(400)
    set('long.example.com', { TXT: [long] })
    expect(await dns.ask('long.example.com', 'TXT', resolver)).toEqual({
      outcome: 'found',
      values: [long],
    })
  })
  it.each(['servfail', 'refused', 'timeout'] as const)(
    'says that nothing can be concluded: %s',
    async (reason) => {
      const { dns, resolver, fail } = build(reason === 'timeout' ? SHORT_MS : undefined)
      fail('broken.example.com', reason)
      expect(await dns.ask('broken.example.com', 'A', resolver)).toMatchObject({
        outcome: 'failed',
        reason,
        message: expect.any(String),
      })
      fail('broken.example.com', undefined)
    },
  )
  it('sees a change at once: nothing is remembered', async () => {
    const { dns, resolver, set } = build()
    set('moving.example.com', { A: ['192.0.2.1'] })
    await dns.ask('moving.example.com', 'A', resolver)
    set('moving.example.com', { A: ['192.0.2.2'] })
    expect(await dns.ask('moving.example.com', 'A', resolver)).toEqual({
      outcome: 'found',
      values: ['192.0.2.2'],
    })
  })
  it('a circle of aliases ends without addresses', async () => {
    const { dns, resolver, set } = build()
    set('a.example.com', { CNAME: ['b.example.com'] })
    set('b.example.com', { CNAME: ['a.example.com'] })
    expect((await dns.ask('a.example.com', 'A', resolver)).outcome).not.toBe('found')
  })
})

it('a resolver that is not there is told as such, not as a name that is not there', async () => {
  const gone = await startDnsServer()
  await gone.close()
  expect(
    await createDnsResolver({ timeout_ms: SHORT_MS, tries: 1 }).ask('shop.example.com', 'A', gone.address),
  ).toMatchObject({ outcome: 'failed' })
})
it('a resolver that is no address is told as unusable and never throws', async () => {
  expect(await createDnsResolver().ask('shop.example.com', 'A', 'not an address')).toMatchObject({
    outcome: 'failed',
    reason: 'unusable',
  })
})
