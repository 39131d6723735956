import { describe, expect, it } from 'vitest'
import { NameError } from '#server/platform/dns/names'
import type { OutboundError } from '#server/platform/outbound/outbound'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { INSIDE_HOSTS } from '#test/support/inside-hosts'

const NAMES: Record<string, string[]> = {
  'public.example.com': ['93.184.216.34', '2606:2800:220:1::1'],
  'mixed.example.com': ['93.184.216.34', '127.0.0.1'],
  'metadata.example.com': ['169.254.169.254'],
  'git.corp.example.com': ['10.0.0.5'],
  'rogue.corp.example.com': ['169.254.169.254'],
  'own.example.com': ['198.51.101.7'],
  'bridged.example.com': ['9.9.9.9'],
  'mapped.example.com': ['::ffff:198.51.101.7'],
  'translated.example.com': ['64:ff9b::198.51.101.7'],
}
const policy = createOutboundPolicy({
  allowed_private_hosts: ['*.corp.example.com', '10.9.0.0/16', 'localhost:3000'],
  resolver: async (host) => {
    if (host === 'slow.example.com') return new Promise(() => {})
    const found = NAMES[host]
    if (!found) throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  },
  interfaces: () => [
    { name: 'eth0', address: '198.51.101.7', cidr: '198.51.101.7/24' },
    { name: 'eth0', address: '2a01:4f8:1:2::7', cidr: '2a01:4f8:1:2::7/64' },
    { name: 'br-1234', address: '9.9.9.1', cidr: '9.9.9.1/24' },
  ],
  dns_timeout_ms: 50,
})
const codeOf = async (work: () => unknown): Promise<string> => {
  try {
    await work()
    return 'allowed'
  } catch (error) {
    return (error as OutboundError).code
  }
}

/** Ways to write an address of this machine or its network, and what is public but of this machine. */
const FORMS = [
  ...INSIDE_HOSTS.map((host) => `https://${host}/`),
  'http://127.0.0.1/',
  'https://198.51.101.7:9000/',
  'https://[::ffff:198.51.101.7]:9000/',
  'https://[64:ff9b::198.51.101.7]:9000/',
  'https://[2a01:4f8:1:2::7]:9000/',
  'https://9.9.9.9/',
  'https://[::ffff:9.9.9.9]/',
]

describe('before DNS', () => {
  it('has at least 40 forms to refuse', () => expect(FORMS.length).toBeGreaterThanOrEqual(40))
  it.each(FORMS)('refuses %s', async (url) =>
    expect(await codeOf(() => policy.checkUrl(url))).toMatch(/^(forbidden|invalid)$/),
  )
  it.each([
    'ftp://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'javascript:alert(1)',
    'https://',
    'x',
    '',
    'https://user:pw@example.com/',
    'https://user@example.com/',
    `https://example.com/${'a'.repeat(3000)}`,
    'http://example.com/',
    'https://example.com:0/',
    'https://a_b..c/',
  ])('refuses %s', async (url) => expect(await codeOf(() => policy.checkUrl(url))).toBe('invalid'))
  it.each([
    'https://example.com/hook?x=1',
    'https://198.51.101.7/',
    'https://[2606:4700:4700::1111]/',
    'http://git.corp.example.com:8080/',
    'http://10.9.1.1/',
    'http://localhost:3000/',
    'https://bücher.example.com/',
  ])('accepts %s', (url) => expect(policy.checkUrl(url)).toBeInstanceOf(URL))
  it('never repeats a credential or a path in its message', async () => {
    await expect(async () => policy.checkUrl('https://user:canary@10.0.0.1/canary')).rejects.not.toThrow(
      /canary/,
    )
    await expect(async () => policy.checkUrl('https://10.0.0.1/canary')).rejects.not.toThrow(/canary/)
  })
})

describe('with DNS', () => {
  it.each([
    ['public.example.com', 443, 'allowed'],
    ['mixed.example.com', 443, 'forbidden'],
    ['metadata.example.com', 443, 'forbidden'],
    ['git.corp.example.com', 22, 'allowed'],
    ['rogue.corp.example.com', 80, 'forbidden'],
    ['own.example.com', 443, 'allowed'],
    ['own.example.com', 9000, 'forbidden'],
    ['own.example.com', 22, 'forbidden'],
    ['mapped.example.com', 443, 'allowed'],
    ['mapped.example.com', 9000, 'forbidden'],
    ['translated.example.com', 9000, 'forbidden'],
    ['::ffff:198.51.101.7', 9000, 'forbidden'],
    ['::ffff:c633:6507', 9000, 'forbidden'],
    ['2A01:04f8:0001:0002:0:0:0:7', 9000, 'forbidden'],
    ['[2a01:4f8:1:2:0::7]', 9000, 'forbidden'],
    ['2a01:4f8:1:2::8', 9000, 'allowed'],
    ['bridged.example.com', 443, 'forbidden'],
    ['absent.example.com', 443, 'unknown_host'],
    ['slow.example.com', 443, 'timeout'],
    ['localhost', 3001, 'forbidden'],
  ])('%s port %i: %s', async (host, port, expected) =>
    expect(await codeOf(() => policy.resolve(host, port))).toBe(expected),
  )

  it('gives the addresses to connect to, so that the name is not resolved again', async () => {
    expect(await policy.resolve('Public.example.com.', 443)).toEqual([
      { address: '93.184.216.34', family: 4 },
      { address: '2606:2800:220:1::1', family: 6 },
    ])
    expect(await policy.resolve('[2606:4700::1111]', 443)).toEqual([
      { address: '2606:4700::1111', family: 6 },
    ])
  })

  it('stops waiting when cancelled', async () => {
    const patient = createOutboundPolicy({
      allowed_private_hosts: [],
      resolver: () => new Promise(() => {}),
    })
    const controller = new AbortController()
    const waiting = codeOf(() => patient.resolve('slow.example.com', 443, controller.signal))
    controller.abort()
    expect(await waiting).toBe('aborted')
  })

  it('looks no name up on the threads of this process, which hang with it and cannot be freed', async () => {
    const leaving = new AbortController()
    const waiting = codeOf(() =>
      createOutboundPolicy({ allowed_private_hosts: [] }).resolve('slow.evil.example', 443, leaving.signal),
    )
    const queued = process.getActiveResourcesInfo()
    leaving.abort()
    expect(await waiting).toBe('aborted')
    expect(queued).not.toContain('GetAddrInfoReqWrap')
  })

  it('leaves no look-up behind that is out of time or cancelled', async () => {
    const ended: string[] = []
    const watched = createOutboundPolicy({
      allowed_private_hosts: [],
      resolver: (host, signal) =>
        new Promise(() => signal!.addEventListener('abort', () => void ended.push(host))),
      dns_timeout_ms: 20,
    })
    expect(await codeOf(() => watched.resolve('slow.example.com', 443))).toBe('timeout')
    const controller = new AbortController()
    const waiting = codeOf(() => watched.resolve('other.example.com', 443, controller.signal))
    controller.abort()
    expect(await waiting).toBe('aborted')
    expect(ended).toEqual(['slow.example.com', 'other.example.com'])
  })

  it('tells a name that nobody answers for from one that is not there', async () => {
    const by = (code: NameError['code']) =>
      createOutboundPolicy({
        allowed_private_hosts: [],
        resolver: async (host) => {
          throw new NameError(code, host)
        },
      }).resolve('some.example.com', 443)
    await expect(by('timeout')).rejects.toThrow('DNS did not answer for some.example.com in time.')
    await expect(by('missing')).rejects.toThrow('The name some.example.com is not known to DNS.')
    await expect(by('failed')).rejects.toThrow('The name some.example.com is not known to DNS.')
  })
})
