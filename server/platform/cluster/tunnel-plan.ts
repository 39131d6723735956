import { createHash } from 'node:crypto'

/** The device on either side; its packets travel as those of the cluster's networks do. */
export const DEVICE = 'ptr-cluster'
/** Tells it from the networks of the cluster, which begin at 4096 and count up. */
const TUNNEL_ID = 0x70_74_72
export const VXLAN_PORT = 4789
/** Fits into what providers leave of a packet between two of their machines. */
export const TUNNEL_MTU = 1350
/** This server inside the tunnel; members are above it. */
export const MANAGER_INNER = '10.216.0.1'
const MEMBERS = 256 * 254

/** One end of the tunnel. */
export interface TunnelEnd {
  /** Address between the servers. */
  address: string
  /** Address inside the tunnel. */
  inner: string
}
/** What leads to a member: its end, and networks of its containers. */
export interface TunnelMember extends TunnelEnd {
  /** Undefined while they are not known: then what leads there already stays. */
  subnets: readonly string[] | undefined
}

const addressAt = (slot: number): string => `10.216.${1 + Math.floor(slot / 256)}.${slot % 256}`

/** Addresses inside the tunnel, which follow from the ids: nothing of them has to be kept. */
export function innerAddresses(node_ids: readonly string[]): Map<string, string> {
  const taken = new Set<number>()
  return new Map(
    [...node_ids].sort().map((id) => {
      let slot = createHash('sha256').update(id).digest().readUInt32BE() % MEMBERS
      // The ends of a /24 are ordinary addresses here, but old network code takes them for something else.
      while (taken.has(slot) || slot % 256 === 0 || slot % 256 === 255) slot = (slot + 1) % MEMBERS
      taken.add(slot)
      return [id, addressAt(slot)]
    }),
  )
}

/** The device's own address on the link; it follows from the one inside the tunnel. */
export function hardwareAddress(inner: string): string {
  const parts = inner.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))
  return ['02', '70', ...parts].join(':')
}

/** Lines for `ip -batch` that make the device; each fails where it is there, but for the last. */
export const deviceLines = (inner: string): { create: string; settle: string[] } => ({
  create: `link add ${DEVICE} type vxlan id ${TUNNEL_ID} dstport ${VXLAN_PORT} nolearning`,
  settle: [
    `link set ${DEVICE} address ${hardwareAddress(inner)}`,
    `addr replace ${inner}/32 dev ${DEVICE}`,
    `link set ${DEVICE} mtu ${TUNNEL_MTU} up`,
  ],
})

/** What one side must have to reach the other end, and what it has, as three lists of the same words. */
export interface Ways {
  routes: string[]
  neighbours: string[]
  forwards: string[]
}

/** @param found what leads through the tunnel now. */
export function waysTo(members: readonly TunnelMember[], found: readonly string[]): Ways {
  return {
    routes: members.flatMap(({ inner, subnets }) => [
      inner,
      ...(subnets?.map((subnet) => `${subnet} via ${inner}`) ??
        found.filter((route) => route.endsWith(` via ${inner}`))),
    ]),
    neighbours: members.map(({ inner }) => `${inner} lladdr ${hardwareAddress(inner)}`),
    forwards: members.map(({ inner, address }) => `${hardwareAddress(inner)} dst ${address}`),
  }
}

const matches = (text: string, pattern: RegExp): string[] =>
  text.split('\n').flatMap((line) => {
    const found = pattern.exec(line)
    return found ? [found.slice(1).filter(Boolean).join(' ')] : []
  })

/** Reads what `ip route`, `ip neigh` and `bridge fdb` say of the device. */
export const readWays = (texts: Record<keyof Ways, string>): Ways => ({
  routes: matches(texts.routes, /^(\d+\.[\d./]+) (via [\d.]+)?/),
  neighbours: matches(texts.neighbours, /^([\d.]+) .*?(lladdr [0-9a-f:]+) .*PERMANENT/),
  forwards: matches(texts.forwards, /^([0-9a-f:]+) .*?(dst [\d.]+)/),
})

/** Lines for `ip -batch` and `bridge -batch` that turn what there is into what should be; empty where it is. */
export function changesOf(found: Ways, desired: Ways, inner: string): { ip: string[]; bridge: string[] } {
  const less = (one: readonly string[], other: readonly string[]) =>
    one.filter((item) => !other.includes(item))
  const first = (words: string) => words.split(' ')[0]!
  /** What takes its place needs no removal. */
  const gone = (one: readonly string[], other: readonly string[]) => less(one.map(first), other.map(first))
  return {
    ip: [
      ...gone(found.routes, desired.routes).map((to) => `route del ${to} dev ${DEVICE}`),
      ...gone(found.neighbours, desired.neighbours).map((to) => `neigh del ${to} dev ${DEVICE}`),
      ...less(desired.neighbours, found.neighbours).map(
        (words) => `neigh replace ${words} dev ${DEVICE} nud permanent`,
      ),
      ...less(desired.routes, found.routes).map(
        (words) =>
          `route replace ${words} dev ${DEVICE} src ${inner}${words.includes(' via ') ? ' onlink' : ''}`,
      ),
    ],
    bridge: [
      ...less(found.forwards, desired.forwards).map(
        (words) => `fdb del ${words.replace(' dst', ` dev ${DEVICE} dst`)} self`,
      ),
      ...less(desired.forwards, found.forwards).map(
        (words) => `fdb replace ${words.replace(' dst', ` dev ${DEVICE} dst`)} self permanent`,
      ),
    ],
  }
}
