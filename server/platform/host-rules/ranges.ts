/** Addresses that are not public, as networks: what `classifyAddress` says of single addresses. */
export const NOT_PUBLIC_V4: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]

/** Global unicast is 2000::/3; of it, what has another purpose. */
export const NOT_PUBLIC_V6: readonly string[] = [
  '::/3',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
  '4000::/2',
  '8000::/1',
]

/** Through this prefix a machine with IPv6 only reaches IPv4; the last 32 bits are the IPv4 address. */
export const NAT64 = '64:ff9b::/96'

/** The NAT64 form of a network of IPv4. */
export function throughNat64(network: string): string {
  const [address = '', prefix = '32'] = network.split('/')
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const hex = (high: number, low: number) => (high * 256 + low).toString(16)
  return `64:ff9b::${hex(a, b)}:${hex(c, d)}/${96 + Number(prefix)}`
}

/** Whatever a machine learns of itself from its cloud, and what no router passes on. */
export const LINK_LOCAL_V4: readonly string[] = ['169.254.0.0/16', '168.63.129.16/32', '192.0.0.192/32']

/** Networks in which other machines of the operator may be. */
export const PRIVATE_V4: readonly string[] = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.168.0.0/16',
]
export const PRIVATE_V6: readonly string[] = ['fc00::/7', 'fe80::/10']
