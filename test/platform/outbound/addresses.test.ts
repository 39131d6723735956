import { describe, expect, it } from 'vitest'
import { classifyAddress, isPublicAddress } from '#server/platform/outbound/addresses'
import { compileAllowList } from '#server/platform/outbound/allow-list'

describe('an address that is not public', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['172.17.0.1', "the engine's bridge"],
    ['192.168.1.1', 'private'],
    ['169.254.169.254', 'metadata'],
    ['169.254.170.2', 'metadata of container services'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['100.100.100.200', 'metadata in carrier-grade NAT'],
    ['168.63.129.16', 'metadata on a public address'],
    ['192.0.0.192', 'metadata'],
    ['198.18.0.1', 'benchmarking'],
    ['192.0.2.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['224.0.0.1', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['192.88.99.1', '6to4 relay'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['::ffff:127.0.0.1', 'mapped'],
    ['::ffff:a9fe:a9fe', 'mapped metadata'],
    ['::127.0.0.1', 'IPv4-compatible'],
    ['64:ff9b::7f00:1', 'NAT64 of loopback'],
    ['64:ff9b::a9fe:a9fe', 'NAT64 of metadata'],
    ['64:ff9b:1::1', 'local NAT64'],
    ['2002:7f00:1::', '6to4'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'Teredo'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'with a zone'],
    ['2606:4700::1%eth0', 'with a zone'],
    ['fc00::1', 'unique local'],
    ['fd00:ec2::254', 'metadata'],
    ['fec0::1', 'site-local'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'documentation'],
    ['100::1', 'discard'],
    ['::ffff:0:7f00:1', 'translated'],
    ['4000::1', 'not assigned'],
    ['', 'nothing'],
    ['example.com', 'a name'],
    ['127.1', 'short'],
    ['0177.0.0.1', 'octal'],
    ['2130706433', 'decimal'],
    ['0x7f000001', 'hexadecimal'],
  ])('%s is refused (%s)', (address) => expect(isPublicAddress(address)).toBe(false))
})

it.each([
  '1.1.1.1',
  '140.82.121.4',
  '100.63.255.255',
  '100.128.0.1',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001::1',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true))

it('tells apart what an entry by name may open (private) from what it may not (metadata and the like)', () => {
  expect(classifyAddress('10.0.0.1')).toBe('private')
  expect(classifyAddress('127.0.0.1')).toBe('private')
  expect(classifyAddress('169.254.169.254')).toBe('unusual')
  expect(classifyAddress('fd00:ec2::254')).toBe('unusual')
})

describe("the operator's list", () => {
  const list = compileAllowList([
    'git.example.com',
    'Forge.Internal:3000',
    '*.lan',
    '10.1.0.0/16',
    '192.168.1.5:8080',
    '[fd00::5]:22',
    'fd01::/16',
  ])
  it.each([
    ['git.example.com', 443, true],
    ['git.example.com', 8443, true],
    ['other.example.com', 443, false],
    ['x.git.example.com', 443, false],
    ['forge.internal', 3000, true],
    ['forge.internal', 443, false],
    ['a.lan', 1, true],
    ['a.b.lan', 1, true],
    ['lan', 1, false],
    ['evillan', 1, false],
  ])('names: %s port %i -> %s', (host, port, expected) => expect(list.hasName(host, port)).toBe(expected))
  it.each([
    ['10.1.2.3', 80, true],
    ['::ffff:10.1.2.3', 80, true],
    ['10.2.0.1', 80, false],
    ['192.168.1.5', 8080, true],
    ['192.168.1.5', 80, false],
    ['fd00::5', 22, true],
    ['fd00:0:0::5', 22, true],
    ['fd00::5', 23, false],
    ['fd01:2::3', 9, true],
    ['fd02::1', 9, false],
  ])('addresses: %s port %i -> %s', (address, port, expected) =>
    expect(list.hasAddress(address, port)).toBe(expected),
  )
})
