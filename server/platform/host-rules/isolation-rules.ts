import type { Opening } from './egress-rules.ts'
import { LINK_LOCAL_V4, NAT64, PRIVATE_V4, PRIVATE_V6, throughNat64 } from './ranges.ts'

type Family = 4 | 6
/** Interfaces of networks that the engine made, project networks among them. */
export const CONTAINER_BRIDGES = 'br-+'
const REFUSE: Record<Family, string> = {
  4: '-j REJECT --reject-with icmp-admin-prohibited',
  6: '-j REJECT --reject-with icmp6-adm-prohibited',
}
/** Without neighbour discovery nothing is found over IPv6, not even the gateway. */
const ICMP: Record<Family, string> = { 4: 'icmp', 6: 'ipv6-icmp' }
const STANDING = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN'

/** What containers may do, of which the rules are made. */
export interface IsolationFacts {
  /** What the operator lists. */
  openings: readonly Opening[]
  nameservers: readonly string[]
  /** Ports on which this machine serves the public. */
  edge_ports: readonly number[]
  /** Networks of containers that Portreeve made; the engine itself keeps them apart. */
  own_networks: string
}

const familyOf = (network: string): Family => (network.includes(':') ? 6 : 4)

function allowed(family: Family, { openings, nameservers }: IsolationFacts): string[] {
  // A published port is told by where the connection was aimed at.
  const listed = openings
    .filter(({ network }) => familyOf(network) === family)
    .flatMap(({ network, port }) =>
      port === undefined
        ? [`-d ${network} -j RETURN`, `-m conntrack --ctorigdst ${network} -j RETURN`]
        : ['tcp', 'udp'].flatMap((protocol) => [
            `-p ${protocol} -d ${network} --dport ${port} -j RETURN`,
            `-p ${protocol} -m conntrack --ctorigdst ${network} --ctorigdstport ${port} -j RETURN`,
          ]),
    )
  const names = nameservers
    .filter((address) => familyOf(address) === family)
    .flatMap((address) =>
      ['udp', 'tcp'].map((protocol) => `-p ${protocol} -d ${address} --dport 53 -j RETURN`),
    )
  return [...new Set([...listed, ...names])].sort()
}

/**
 * For packets from containers to this machine itself: what serves the public, and nothing else. A
 * metadata service may be a program of this machine, at its usual address and on a port of the
 * edge.
 */
export const inputRules = (facts: IsolationFacts, family: Family = 4): string[] => [
  STANDING,
  ...allowed(family, facts),
  ...(family === 4 ? LINK_LOCAL_V4.map((network) => `-d ${network} ${REFUSE[4]}`) : []),
  ...facts.edge_ports.flatMap((port) => [
    `-p tcp --dport ${port} -j RETURN`,
    `-p udp --dport ${port} -j RETURN`,
  ]),
  `-p ${ICMP[family]} -j RETURN`,
  REFUSE[family],
]

/**
 * For packets from containers to others: no metadata service and no neighbour of this machine.
 * @param is_kept whether the engine's own rules stand, which keep its networks apart.
 */
export const forwardRules = (facts: IsolationFacts, family: Family = 4, is_kept = true): string[] => [
  STANDING,
  ...allowed(family, facts),
  ...(family === 4
    ? [
        ...LINK_LOCAL_V4.map((network) => `-d ${network} ${REFUSE[4]}`),
        // By way of a bridge alone: a neighbour of this machine may have an address of that range
        // as well. Without the engine's rules only what stays on one bridge, where the kernel
        // filters that at all.
        `-d ${facts.own_networks} -o ${CONTAINER_BRIDGES}${is_kept ? '' : ' -m physdev --physdev-is-bridged'} -j RETURN`,
        ...PRIVATE_V4.map((network) => `-d ${network} ${REFUSE[4]}`),
      ]
    : [
        // What a translator would reach is refused as it is over IPv4.
        ...[...LINK_LOCAL_V4, ...PRIVATE_V4].map((network) => `-d ${throughNat64(network)} ${REFUSE[6]}`),
        `-d ${NAT64} -j RETURN`,
        ...PRIVATE_V6.map((network) => `-d ${network} ${REFUSE[6]}`),
      ]),
]
