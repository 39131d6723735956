import type { Opening } from './egress-rules.ts'
import { LINK_LOCAL_V4, PRIVATE_V4 } from './ranges.ts'

const REFUSE = '-j REJECT --reject-with icmp-admin-prohibited'
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

const isV4 = (network: string) => !network.includes(':')

function allowed({ openings, nameservers }: IsolationFacts): string[] {
  // A published port is told by where the connection was aimed at.
  const listed = openings
    .filter(({ network }) => isV4(network))
    .flatMap(({ network, port }) =>
      port === undefined
        ? [`-d ${network} -j RETURN`, `-m conntrack --ctorigdst ${network} -j RETURN`]
        : ['tcp', 'udp'].flatMap((protocol) => [
            `-p ${protocol} -d ${network} --dport ${port} -j RETURN`,
            `-p ${protocol} -m conntrack --ctorigdst ${network} --ctorigdstport ${port} -j RETURN`,
          ]),
    )
  const names = nameservers
    .filter(isV4)
    .flatMap((address) =>
      ['udp', 'tcp'].map((protocol) => `-p ${protocol} -d ${address} --dport 53 -j RETURN`),
    )
  return [...new Set([...listed, ...names])].sort()
}

/** For packets from containers to this machine itself: what serves the public, and nothing else. */
export const inputRules = (facts: IsolationFacts): string[] => [
  STANDING,
  ...allowed(facts),
  ...facts.edge_ports.flatMap((port) => [
    `-p tcp --dport ${port} -j RETURN`,
    `-p udp --dport ${port} -j RETURN`,
  ]),
  '-p icmp -j RETURN',
  REFUSE,
]

/** For packets from containers to others: no metadata service and no neighbour of this machine. */
export const forwardRules = (facts: IsolationFacts): string[] => [
  STANDING,
  ...allowed(facts),
  ...LINK_LOCAL_V4.map((network) => `-d ${network} ${REFUSE}`),
  `-d ${facts.own_networks} -j RETURN`,
  ...PRIVATE_V4.map((network) => `-d ${network} ${REFUSE}`),
]
