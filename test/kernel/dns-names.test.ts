import { describe, expect, it } from 'vitest'
import { DNS_LABEL, dnsName } from '#server/kernel/dns-names'

const LONG = Array.from({ length: 4 }, () => 'a'.repeat(63)).join('.')
const GOOD = ['shop.example.com', 'a.b', '_dmarc.example.com', 'x-1.example', LONG.slice(0, 253)]
const BAD = [
  '',
  '.',
  'a..b',
  '.a.b',
  'a.b.',
  'A.b',
  '-a.b',
  'a-.b',
  'a b.c',
  'a.b\n',
  'münchen.de',
  `${'a'.repeat(64)}.b`,
  `${LONG.slice(0, 252)}.a`,
  'a*.b',
  '*.*.b',
]

describe('the form of a name in DNS', () => {
  it.each(GOOD)('%s is one', (name) => expect(dnsName().test(name)).toBe(true))
  it.each(BAD)('%j is none', (name) =>
    expect([dnsName().test(name), dnsName({ wildcard: true }).test(name)]).toEqual([false, false]),
  )
  it('may have a wildcard as its first label, and needs two others, only where that is asked for', () => {
    const accepted = (options: Parameters<typeof dnsName>[0]) =>
      ['host', 'a.b', '*.host', '*.a.b', '*'].filter((name) => dnsName(options).test(name))
    expect(accepted({})).toEqual(['host', 'a.b'])
    expect(accepted({ wildcard: true })).toEqual(['host', 'a.b', '*.host', '*.a.b'])
    expect(accepted({ labels: 2 })).toEqual(['a.b'])
    expect(accepted({ wildcard: true, labels: 2 })).toEqual(['a.b', '*.a.b'])
  })
  it('has labels that are known one by one', () =>
    expect(
      ['a', 'a-b', '_a', 'a'.repeat(63), '', 'a.b', '-a', 'a'.repeat(64)].filter((label) =>
        DNS_LABEL.test(label),
      ),
    ).toHaveLength(4))
})
