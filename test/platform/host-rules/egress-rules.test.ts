import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { egressRules, allowedRules } from '#server/platform/host-rules/egress-rules'
import { NAT64, NOT_PUBLIC_V4, NOT_PUBLIC_V6, throughNat64 } from '#server/platform/host-rules/ranges'
import { isPublicAddress } from '#server/platform/outbound/addresses'

const holds = (networks: readonly string[], address: string) =>
  networks.some((network) => ipaddr.parse(address).match(ipaddr.parseCIDR(network)))
/** The first, the last, and what is beside a network. */
function edges(network: string): string[] {
  const [address, prefix] = ipaddr.parseCIDR(network)
  const bytes = address.toByteArray()
  const first = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  const size = 1n << BigInt(bytes.length * 8 - prefix)
  const text = (value: bigint) =>
    ipaddr
      .fromByteArray([...Buffer.from(value.toString(16).padStart(bytes.length * 2, '0'), 'hex')])
      .toString()
  const all = 1n << BigInt(bytes.length * 8)
  return [first - 1n, first, first + size / 2n, first + size - 1n, first + size]
    .filter((value) => value >= 0n && value < all)
    .map(text)
}

describe('the networks that the engine is kept from', () => {
  it('are those whose addresses the guarded client refuses, to the last address', () => {
    const wrong = NOT_PUBLIC_V4.flatMap(edges).filter(
      (address) => holds(NOT_PUBLIC_V4, address) === isPublicAddress(address),
    )
    expect(wrong).toEqual([])
    const samples = Array.from({ length: 20_000 }, (_, at) =>
      ipaddr.fromByteArray([(at * 7) % 256, (at * 31) % 256, (at * 13) % 256, (at * 101) % 256]).toString(),
    )
    expect(samples.filter((one) => holds(NOT_PUBLIC_V4, one) === isPublicAddress(one))).toEqual([])
  })
  it('and of IPv6, with what a translator would reach', () => {
    const translated = NOT_PUBLIC_V4.map(throughNat64)
    const refused = (address: string) =>
      holds(translated, address) || (!holds([NAT64], address) && holds(NOT_PUBLIC_V6, address))
    const samples = [
      ...NOT_PUBLIC_V6.flatMap(edges),
      ...['64:ff9b::808:808', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '2606:4700::1111', 'fd00::1', '::1'],
    ]
    expect(samples.filter((one) => refused(one) === isPublicAddress(one))).toEqual([])
  })
})

describe('the rules', () => {
  it('let pass first what the operator listed and the name servers, then refuse, then spare the edge', () => {
    const allowed = allowedRules(4, [{ network: '10.0.0.5', port: 5000 }, { network: 'fd00::5' }])
    const rules = egressRules(4, allowed, ['10.0.0.53', 'fd00::53'], [80])
    const place = (text: string) => rules.findIndex((rule) => rule.includes(text))
    expect(place('-d 10.0.0.5 --dport 5000 -j RETURN')).toBe(0)
    expect(place('-d 10.0.0.53 --dport 53 -j RETURN')).toBe(2)
    expect(place('-d 10.0.0.0/8 -j REJECT')).toBeGreaterThan(2)
    expect(rules.join('\n')).not.toContain('fd00')
    expect(rules.at(-2)).toContain('--dport 80 -j RETURN')
    expect(rules.at(-1)).toContain('--dst-type LOCAL -j REJECT')
  })
})
