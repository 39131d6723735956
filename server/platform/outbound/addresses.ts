import ipaddr from 'ipaddr.js'

/** Never a service that an operator runs on purpose: only an entry with the address itself may open these. */
const UNUSUAL = new Set(['unspecified', 'broadcast', 'multicast', 'linkLocal', 'reserved'])
const PUBLIC_V6 = ipaddr.parseCIDR('2000::/3')
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96')
/** Fixed address of a cloud's metadata service outside of the link-local range. */
const METADATA = new Set(['168.63.129.16', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254'])

/**
 * What kind of network an address belongs to. Only `public` may be connected to without the operator's word.
 */
export type AddressClass = 'public' | 'private' | 'unusual'

function classOf(given: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  const address = plainAddress(given)
  if (METADATA.has(address.toString())) return 'unusual'
  const range = address.range()
  if (address instanceof ipaddr.IPv6) {
    // Whatever is not global unicast is refused, known by name or not (site-local, IPv4-compatible, local
    // NAT64, …).
    if (range === 'unicast' && address.match(PUBLIC_V6)) return 'public'
    return range === 'uniqueLocal' || range === 'loopback' ? 'private' : 'unusual'
  }
  if (range === 'unicast') return 'public'
  return UNUSUAL.has(range) ? 'unusual' : 'private'
}

/** Classifies an address literal as the system writes it; anything that cannot be read is `unusual`. */
export function classifyAddress(text: string): AddressClass {
  if (text.includes('%')) return 'unusual'
  const address = parseAddress(text)
  return address ? classOf(address) : 'unusual'
}

/**
 * True when the address is reachable for everybody on the internet, so that connecting to it reveals nothing
 * of this network.
 */
export const isPublicAddress = (text: string): boolean => classifyAddress(text) === 'public'

/**
 * Reads an address in its usual form: four decimal parts, or IPv6 without a zone. No octal, hexadecimal or
 * short forms.
 */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text)
    ? ipaddr.IPv6.parse(text)
    : undefined
}

/**
 * The address with IPv4 that is written as IPv6 as IPv4, so that one rule matches all spellings: mapped, or behind
 * the prefix through which a host with IPv6 only reaches IPv4. What counts is the address inside.
 */
export function plainAddress(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (!(address instanceof ipaddr.IPv6)) return address
  if (address.isIPv4MappedAddress()) return address.toIPv4Address()
  return address.match(NAT64) ? ipaddr.fromByteArray(address.toByteArray().slice(12)) : address
}

/** True when both are the same address, whatever their spelling. */
export function isSameAddress(one: string, other: string): boolean {
  const [a, b] = [one, other].map(parseAddress)
  return a !== undefined && b !== undefined && plainAddress(a).toString() === plainAddress(b).toString()
}

/** True when the address lies in the network, whatever its spelling. */
export function isInside(text: string, network: [ipaddr.IPv4 | ipaddr.IPv6, number]): boolean {
  const address = parseAddress(text)
  if (!address) return false
  const plain = plainAddress(address)
  return plain.kind() === network[0].kind() && plain.match(network)
}
