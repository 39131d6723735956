import { describe, expect, it } from 'vitest'
import { readableHostname, readHostname, reservedReason, wwwCounterpart } from '#server/domains/hostname'

const label = 'a'.repeat(63)
const of = (length: number) =>
  `${`${'a'.repeat(49)}.`.repeat(5)}${'b'.repeat(length - 250)}`.slice(0, length - 4).replace(/\.$/, 'c') +
  '.com'

describe('a host name', () => {
  it.each([
    ['a plain name', 'shop.example.com', 'shop.example.com'],
    ['a name of two labels', 'example.com', 'example.com'],
    ['an international name, in ASCII', 'münchen.de', 'xn--mnchen-3ya.de'],
    ['one in another script', '例え.jp', 'xn--r8jz45g.jp'],
    ['one that is in ASCII already', 'xn--mnchen-3ya.de', 'xn--mnchen-3ya.de'],
    ['upper case, in lower', 'Shop.EXAMPLE.com', 'shop.example.com'],
    ['upper case of other scripts', 'MÜNCHEN.de', 'xn--mnchen-3ya.de'],
    ['a trailing dot, without it', 'shop.example.com.', 'shop.example.com'],
    ['spaces around it', '  shop.example.com ', 'shop.example.com'],
    ['253 characters', of(253), of(253)],
    ['a label of 63 characters', `${label}.com`, `${label}.com`],
    ['a wildcard', '*.example.com', '*.example.com'],
    ['an underscore', 'my_shop.example.com', 'my_shop.example.com'],
    ['a wildcard below a deeper name', '*.eu.example.com', '*.eu.example.com'],
    ['digits and hyphens', '1-2.3com.org', '1-2.3com.org'],
    ['a private network: .internal', 'shop.internal', 'shop.internal'],
    ['a private network: .local', 'nas.local', 'nas.local'],
    ['a private network: .test', 'shop.test', 'shop.test'],
    ['a home network', 'nas.home.arpa', 'nas.home.arpa'],
    ['a name below a suffix of a hosting company', 'me.github.io', 'me.github.io'],
  ])('is accepted: %s', (_what, given, kept) => {
    expect(readHostname(given)).toEqual({ hostname: kept })
  })
  it.each([
    ['254 characters', of(254), 'longer than 253'],
    ['a wildcard of 254 characters', `*.${of(252)}`, 'longer than 253'],
    ['a label of 64 characters', `${label}a.com`, 'more than 63'],
    ['a wildcard in the middle', 'shop.*.example.com', 'whole first label'],
    ['a wildcard as a part of a label', 'shop*.example.com', 'whole first label'],
    ['two wildcards', '*.*.example.com', 'whole first label'],
    ['a wildcard alone', '*', 'whole first label'],
    ['a wildcard over a top-level domain', '*.com', 'whole top-level domain'],
    ['a public suffix', 'co.uk', 'public suffix'],
    ['a wildcard over a public suffix', '*.co.uk', 'public suffix'],
    ['a suffix of a hosting company', 'github.io', 'public suffix'],
    ['an IPv4 address', '192.0.2.1', 'IP address'],
    ['an IPv6 address', '2001:db8::1', 'IP address'],
    ['an IPv6 address in brackets', '[2001:db8::1]', 'IP address'],
    ['an IPv4 address in hexadecimal', '0x7f.1', 'not a valid'],
    ['a name that ends in a number', 'shop.123', 'not a valid'],
    ['localhost', 'localhost', 'own machine'],
    ['a name below localhost', 'shop.localhost', 'own machine'],
    ['a single label', 'intranet', 'at least two labels'],
    ['a name that never resolves', 'shop.invalid', 'never resolves'],
    ['a name for documents', 'shop.example', 'never resolves'],
    ['an onion name', 'shop.onion', 'Tor'],
    ['a name for reverse look-ups', '1.2.0.192.in-addr.arpa', 'infrastructure'],
    ['two dots in a row', 'shop..example.com', 'empty label'],
    ['a dot in front', '.example.com', 'empty label'],
    ['an international label that says nothing', 'xn--a.example.com', 'no valid international name'],
    ['one that is encoded twice', 'xn--xn--a.example.com', 'no valid international name'],
    ['a hyphen in front', '-shop.example.com', 'hyphen'],
    ['a hyphen at the end of a label', 'shop-.example.com', 'hyphen'],
    ['an address with a scheme', 'https://shop.example.com', 'alone'],
    ['a port', 'shop.example.com:8080', 'alone'],
    ['a path', 'shop.example.com/blog', 'alone'],
    ['a percent sign', 'sh%6fp.example.com', 'alone'],
    ['a space inside', 'my shop.example.com', 'alone'],
    ['a line break', 'shop.example.com\nadmin.example.com', 'alone'],
    ['nothing', ' ', 'empty'],
  ])('is refused with a reason: %s', (_what, given, reason) => {
    expect(readHostname(given)).toEqual({ refused: expect.stringContaining(reason) })
  })
  it('is shown as people read it', () => {
    expect(readableHostname('*.xn--mnchen-3ya.de')).toBe('*.münchen.de')
    expect(readableHostname('shop.example.com')).toBe('shop.example.com')
  })
  it('has one counterpart with or without www', () => {
    expect([wwwCounterpart('example.com'), wwwCounterpart('www.example.com')]).toEqual([
      'www.example.com',
      'example.com',
    ])
  })
})

describe('names that the installation keeps for itself', () => {
  const reserved = { base_domain: 'apps.example.com', dashboard_domains: ['portreeve.example.com'] }
  it.each([
    ['the dashboard', 'portreeve.example.com', 'dashboard'],
    ['the base domain', 'apps.example.com', 'base domain'],
    ['a name below the base domain', 'shop.apps.example.com', 'base domain'],
    [
      'a wildcard over the dashboard',
      '*.example.com',
      'covers portreeve.example.com, the name of the dashboard',
    ],
    ['a wildcard over the base domain', '*.apps.example.com', 'base domain'],
    ['a wildcard below the base domain', '*.shop.apps.example.com', 'base domain'],
  ])('are refused: %s', (_what, hostname, reason) => {
    expect(reservedReason(hostname, reserved)).toContain(reason)
  })
  it.each(['example.com', 'shop.example.com', 'myapps.example.com', '*.shop.example.com', '*.com'])(
    'do not take away others: %s',
    (hostname) => {
      expect(reservedReason(hostname, reserved)).toBeUndefined()
    },
  )
})
