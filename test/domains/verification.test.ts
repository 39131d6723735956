import { beforeEach, describe, expect, it } from 'vitest'
import { proxyOf } from '#server/domains/dns-proxies'
import { lookUp } from '#server/domains/lookup'
import { type Finding, evaluate, recordsOf, txtNameOf } from '#server/domains/verification'
import type { Dns } from '#server/platform/dns/dns'
import { createFakeDns, type FakeDns } from '#server/platform/dns/fake'

const EXPECTED = { addresses: ['192.0.2.10', '2001:db8::10'], base_domain: 'apps.example.net' }
const TOKEN = 'a'.repeat(40)
const PROOF = `portreeve-verification=${TOKEN}`
const RESOLVERS = ['192.0.2.53', '192.0.2.54']
let dns: FakeDns
beforeEach(() => {
  dns = createFakeDns()
})
async function find(
  hostname: string,
  { resolvers = RESOLVERS, counterpart = null as string | null } = {},
): Promise<Finding> {
  const txt_name = txtNameOf({ hostname, counterpart })
  const names = counterpart ? [hostname, counterpart] : [hostname]
  return evaluate(
    await Promise.all(names.map((name) => lookUp(dns, resolvers, name, txt_name))),
    EXPECTED,
    TOKEN,
    txt_name,
  )
}

describe('a name is proven', () => {
  it('by an A record to this server', async () => {
    dns.set('shop.example.com', { A: ['192.0.2.10'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'address',
      points_here: true,
      proxied_by: null,
      message: 'shop.example.com leads to this server.',
    })
  })
  it('by an AAAA record alone', async () => {
    dns.set('shop.example.com', { AAAA: ['2001:db8::10'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'address',
      points_here: true,
    })
  })
  it('by a chain of aliases to this server, which is shown', async () => {
    dns.set('shop.example.com', { CNAME: ['lb.example.com'] })
    dns.set('lb.example.com', { CNAME: ['edge.example.org'] })
    dns.set('edge.example.org', { A: ['192.0.2.10'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'address',
      found: { CNAME: ['lb.example.com', 'edge.example.org'], A: ['192.0.2.10'] },
    })
  })
  it('by an alias to a name below the base domain, whatever its addresses are', async () => {
    dns.set('shop.example.com', { CNAME: ['shop.apps.example.net'] })
    dns.set('shop.apps.example.net', { A: ['198.51.100.7'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'address',
      points_here: true,
    })
  })
  it('by an alias to the base domain itself', async () => {
    dns.set('shop.example.com', { CNAME: ['apps.example.net'] })
    dns.set('apps.example.net', { A: ['198.51.100.7'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'address',
      points_here: true,
    })
  })
  it('by the text, while it does not lead here yet, and that is said', async () => {
    dns.set('_portreeve.shop.example.com', { TXT: ['something else', PROOF] })
    dns.set('shop.example.com', { A: ['198.51.100.7'] })
    const finding = await find('shop.example.com')
    expect(finding).toMatchObject({ proven_by: 'txt', points_here: false })
    expect(finding.message).toBe(
      'The TXT record proves the domain. shop.example.com leads to 198.51.100.7; expected was 192.0.2.10, 2001:db8::10. Change its A and AAAA records, or the alias that it follows.',
    )
  })
  it('by a wildcard record, asked for with a name that nobody has set by itself', async () => {
    dns.set('*.example.com', { A: ['192.0.2.10'] })
    expect(await find('*.example.com')).toMatchObject({ proven_by: 'address' })
    expect(
      dns.questions
        .filter(({ type }) => type === 'A')
        .every(({ name }) => /^portreeve-[0-9a-f]{12}\.example\.com$/.test(name)),
    ).toBe(true)
    expect(txtNameOf({ hostname: '*.example.com', counterpart: null })).toBe('_portreeve.example.com')
  })
})

describe('a name is not proven, and the answer says what to change', () => {
  it.each([
    [
      'there is no such name',
      {},
      'is not in DNS (NXDOMAIN). Add an A or AAAA record that leads to 192.0.2.10',
    ],
    ['it has no address', { TXT: ['x'] }, 'has neither an A nor an AAAA record'],
    [
      'the name that it is an alias of is not there',
      { CNAME: ['typo.example.org'] },
      'shop.example.com is an alias (CNAME) of typo.example.org, which is not in DNS (NXDOMAIN). Correct the CNAME',
    ],
    ['it leads elsewhere', { A: ['198.51.100.7'] }, 'leads to 198.51.100.7; expected was 192.0.2.10'],
    [
      'it leads here and elsewhere',
      { A: ['192.0.2.10', '198.51.100.7'] },
      'and to 198.51.100.7 as well. Remove the records with 198.51.100.7',
    ],
    [
      'IPv4 leads here, IPv6 elsewhere',
      { A: ['192.0.2.10'], AAAA: ['2001:db8::99'] },
      'Remove the records with 2001:db8::99',
    ],
  ])('%s', async (_what, records, sentence) => {
    if (Object.keys(records).length > 0) dns.set('shop.example.com', records)
    const finding = await find('shop.example.com')
    expect(finding.proven_by).toBeNull()
    expect(finding.message).toContain(sentence)
  })
  it.each([
    ['servfail', 'was made to fail'],
    ['timeout', 'was made to fail'],
  ] as const)(
    'the resolvers cannot say: %s is not taken for a name that is not there',
    async (reason, sentence) => {
      dns.fail('shop.example.com', reason)
      const finding = await find('shop.example.com')
      expect(finding).toMatchObject({ proven_by: null, points_here: null })
      expect(finding.message).toContain(`cannot be judged: 192.0.2.53 ${sentence}`)
      expect(finding.message).not.toContain('NXDOMAIN')
    },
  )
  it('it stands behind a proxy of the DNS provider: then only the text proves it', async () => {
    dns.set('shop.example.com', { A: ['104.16.1.1'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: null,
      proxied_by: 'Cloudflare',
      points_here: null,
      message: expect.stringContaining('Set the TXT record, or turn the proxy off'),
    })
    dns.set('_portreeve.shop.example.com', { TXT: [PROOF] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: 'txt',
      proxied_by: 'Cloudflare',
      points_here: null,
    })
  })
  it('the resolvers do not agree: each is shown with what it says', async () => {
    dns.set('shop.example.com', { A: ['192.0.2.10'] }, '192.0.2.53')
    dns.set('shop.example.com', { A: ['198.51.100.7'] }, '192.0.2.54')
    const finding = await find('shop.example.com')
    expect(finding.proven_by).toBeNull()
    expect(finding.points_here).toBeNull()
    expect(finding.message).toMatch(
      /do not agree.*192\.0\.2\.53: shop\.example\.com leads to this server.*192\.0\.2\.54: shop\.example\.com leads to 198\.51\.100\.7/,
    )
  })
  it.each(['timeout', 'servfail'] as const)('no resolver can say what the text is (%s)', async (reason) => {
    dns.fail('_portreeve.shop.example.com', reason)
    expect(await find('shop.example.com')).toMatchObject({ proven_by: null, has_text: false })
  })
  it('the text is there at one resolver alone', async () => {
    dns.set('_portreeve.shop.example.com', { TXT: [PROOF] }, '192.0.2.53')
    expect((await find('shop.example.com')).proven_by).toBeNull()
  })
  it('a resolver that is down does not keep the others from proving it', async () => {
    dns.set('shop.example.com', { A: ['192.0.2.10'] })
    dns.fail('shop.example.com', 'timeout', '192.0.2.54')
    expect((await find('shop.example.com')).proven_by).toBe('address')
  })
  it('its alias has no addresses', async () => {
    dns.set('shop.example.com', { CNAME: ['mail.example.org'] })
    dns.set('mail.example.org', { TXT: ['x'] })
    expect((await find('shop.example.com')).message).toContain(
      'shop.example.com is an alias (CNAME) of mail.example.org, which has no addresses. Correct the CNAME',
    )
  })
  it("its alias only ends like the base domain, and is somebody else's name", async () => {
    dns.set('shop.example.com', { CNAME: ['not-apps.example.net'] })
    dns.set('not-apps.example.net', { A: ['198.51.100.7'] })
    expect(await find('shop.example.com')).toMatchObject({ proven_by: null, points_here: false })
  })
  it('the text is another one', async () => {
    dns.set('_portreeve.shop.example.com', { TXT: ['portreeve-verification=of somebody else'] })
    expect(await find('shop.example.com')).toMatchObject({
      proven_by: null,
      message: expect.stringContaining('holds another text'),
    })
  })
  it('its name servers give one alias after the other slowly, and it is asked no more once its time is over', async () => {
    const over = new AbortController()
    let asked = 0
    const slow: Dns = {
      async ask(name, type, _resolver, signal) {
        if (signal?.aborted)
          return { outcome: 'failed', reason: 'timeout', message: 'did not answer in time' }
        if (type !== 'CNAME') return { outcome: 'empty' }
        asked += 1
        if (asked === 3) over.abort()
        return { outcome: 'found', values: [`next.${name}`] }
      },
    }
    const { views } = await lookUp(slow, [], 'shop.example.com', '_portreeve.shop.example.com', over.signal)
    expect([asked, views[0]!.aliases.length, views[0]!.circle]).toEqual([3, 3, false])
  })
  it('its aliases lead in a circle, which ends', async () => {
    dns.set('shop.example.com', { CNAME: ['b.example.com'] })
    dns.set('b.example.com', { CNAME: ['shop.example.com'] })
    expect((await find('shop.example.com')).message).toContain('lead in a circle')
    dns.set('self.example.com', { CNAME: ['self.example.com'] })
    expect((await find('self.example.com')).message).toContain(
      'The aliases of self.example.com lead in a circle or over too many names: self.example.com. Let',
    )
  })
  it('its aliases go on without end, and nobody follows for ever', async () => {
    for (let at = 0; at < 100; at += 1)
      dns.set(at === 0 ? 'shop.example.com' : `n${at}.example.com`, {
        CNAME: [`n${at + 1}.example.com`],
      })
    expect((await find('shop.example.com', { resolvers: ['192.0.2.53'] })).proven_by).toBeNull()
    expect(dns.questions.length).toBeLessThan(15)
  })
  it('one of a pair with and without www is missing', async () => {
    dns.set('example.com', { A: ['192.0.2.10'] })
    expect(await find('example.com', { counterpart: 'www.example.com' })).toMatchObject({
      proven_by: null,
      points_here: false,
      message: expect.stringContaining('www.example.com is not in DNS'),
    })
    dns.set('_portreeve.example.com', { TXT: [PROOF] })
    expect(await find('www.example.com', { counterpart: 'example.com' })).toMatchObject({
      proven_by: 'txt',
    })
  })
})

it('the records to set say what was found and whether it is right', async () => {
  dns.set('shop.example.com', { A: ['192.0.2.10'], AAAA: ['2001:db8::99'] })
  const records = recordsOf(
    { hostname: 'shop.example.com', counterpart: null, token: TOKEN },
    EXPECTED,
    await find('shop.example.com'),
  )
  expect(records).toEqual([
    {
      type: 'A',
      name: 'shop.example.com',
      value: '192.0.2.10',
      purpose: 'address',
      found: ['192.0.2.10'],
      ok: true,
    },
    {
      type: 'AAAA',
      name: 'shop.example.com',
      value: '2001:db8::10',
      purpose: 'address',
      found: ['2001:db8::99'],
      ok: false,
    },
    {
      type: 'TXT',
      name: '_portreeve.shop.example.com',
      value: PROOF,
      purpose: 'ownership',
      found: [],
      ok: false,
    },
  ])
})
it('texts of strangers are kept as far as somebody needs them to recognise one', async () => {
  dns.set('_portreeve.shop.example.com', {
    TXT: ['x'.repeat(4000), ...Array.from({ length: 30 }, (_, at) => `text ${at}`)],
  })
  const { found } = await find('shop.example.com')
  expect([found.TXT.length, found.TXT[0]]).toEqual([20, 'x'.repeat(255)])
})
it('networks of proxies are told by address, both families', () => {
  expect([
    proxyOf('172.67.1.1'),
    proxyOf('2606:4700::1111'),
    proxyOf('192.0.2.10'),
    proxyOf('172.15.0.1'),
  ]).toEqual(['Cloudflare', 'Cloudflare', undefined, undefined])
})

describe('on a private network', () => {
  const at_home = { addresses: ['192.168.1.5', 'fd00::5', '10.8.0.1', 'fd12::1'] }
  const finding = async (A: string[]) => {
    dns.set('shop.example.com', { A })
    const txt_name = txtNameOf({ hostname: 'shop.example.com', counterpart: null })
    return evaluate([await lookUp(dns, RESOLVERS, 'shop.example.com', txt_name)], at_home, TOKEN, txt_name)
  }
  it('no private IPv6 address is offered beside one of IPv4, but one that is set counts', async () => {
    const domain = { hostname: 'shop.example.com', counterpart: null, token: TOKEN }
    const valuesOf = (addresses: string[]) =>
      recordsOf(domain, { addresses }, undefined).flatMap(({ type, value }) =>
        type === 'TXT' ? [] : [value],
      )
    expect(valuesOf(at_home.addresses)).toEqual(['192.168.1.5', '10.8.0.1'])
    expect(valuesOf(['fd00::5'])).toEqual(['fd00::5'])
    expect(valuesOf(['192.0.2.10', '2001:4860::10'])).toEqual(['192.0.2.10', '2001:4860::10'])
    const elsewhere = await finding(['192.168.1.9'])
    expect(elsewhere.message).toContain('expected was 192.168.1.5, 10.8.0.1. Change')
    dns.set('v6.example.com', { AAAA: ['fd00::5'] })
    const txt_name = txtNameOf({ hostname: 'v6.example.com', counterpart: null })
    const known = await lookUp(dns, RESOLVERS, 'v6.example.com', txt_name)
    expect(evaluate([known], at_home, TOKEN, txt_name).proven_by).toBe('address')
  })
  it('a name that leads to a public address is told of the setting for a router', async () => {
    expect((await finding(['93.184.216.34'])).message).toContain(
      'If that is the router in front of this server, an administrator enters it in the settings, under DNS, as a public address.',
    )
    expect((await finding(['192.168.1.9'])).message).not.toContain('router')
  })
})
