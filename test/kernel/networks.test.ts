import { describe, expect, it } from 'vitest'
import { compileNetworks, isNetwork } from '#server/kernel/networks'

describe('addresses and networks', () => {
  it.each([
    '203.0.113.7',
    '203.0.113.0/24',
    '0.0.0.0/0',
    '10.0.0.1/32',
    '2001:db8::1',
    '2001:db8::/32',
    '::/0',
    '::1/128',
    '::ffff:203.0.113.7',
  ])('%s is one', (text) => expect(isNetwork(text)).toBe(true))
  it.each([
    '',
    'a',
    '203.0.113.0/33',
    '2001:db8::/129',
    '203.0.113.0/',
    '203.0.113.0/-1',
    '203.0.113.0/8/8',
    '203.0.113',
    '0x7f000001',
    'fe80::1%eth0',
    'fe80::%eth0/64',
    ' 10.0.0.1',
    '10.0.0.0/ 8',
    '10.0.0.0/0008',
  ])('%j is none', (text) => expect(isNetwork(text)).toBe(false))
  it('hold the addresses inside of them, of their own kind', () => {
    const isInside = compileNetworks(['203.0.113.0/24', '198.51.100.7', '2001:db8::/32', '::1'])
    expect(
      ['203.0.113.0', '203.0.113.255', '198.51.100.7', '2001:db8::5', '::1'].filter(
        (address) => !isInside(address),
      ),
    ).toEqual([])
    expect(
      ['203.0.114.0', '198.51.100.8', '2001:db9::', '::2', '', 'x', '203.0.113.1/32'].filter(isInside),
    ).toEqual([])
    expect(compileNetworks([])('203.0.113.1')).toBe(false)
  })
})
