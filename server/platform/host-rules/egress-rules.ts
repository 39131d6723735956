import { NAT64, NOT_PUBLIC_V4, NOT_PUBLIC_V6, throughNat64 } from './ranges.ts'

/** An address or network that the operator allows, for one port or for all. */
export interface Opening {
  network: string
  port?: number
}

const familyOf = (network: string): 4 | 6 => (network.includes(':') ? 6 : 4)
/** Beginnings of TCP connections; answers on those that stand pass anyway. */
const TCP = '-p tcp --syn'
const REFUSE = '-j REJECT --reject-with tcp-reset'

/** What may pass before anything is refused. A published port is told by where the connection was aimed at. */
export function allowedRules(family: 4 | 6, openings: readonly Opening[]): string[] {
  const rules = openings
    .filter(({ network }) => familyOf(network) === family)
    .flatMap(({ network, port }) => [
      `${TCP} -d ${network}${port === undefined ? '' : ` --dport ${port}`} -j RETURN`,
      `${TCP} -m conntrack --ctorigdst ${network}${port === undefined ? '' : ` --ctorigdstport ${port}`} -j RETURN`,
    ])
  return [...new Set(rules)].sort()
}

/** Rules for what the engine's own process connects to. @param is_cut resets each of its connections. */
export function egressRules(
  family: 4 | 6,
  allowed: readonly string[],
  nameservers: readonly string[],
  edge_ports: readonly number[],
  is_cut = false,
): string[] {
  const refused =
    family === 4
      ? NOT_PUBLIC_V4.map((network) => `${TCP} -d ${network} ${REFUSE}`)
      : [
          ...NOT_PUBLIC_V4.map((network) => `${TCP} -d ${throughNat64(network)} ${REFUSE}`),
          `${TCP} -d ${NAT64} -j RETURN`,
          ...NOT_PUBLIC_V6.map((network) => `${TCP} -d ${network} ${REFUSE}`),
        ]
  return [
    // Also of what stands: the other end of each connection is told that it is over, and so is the engine.
    ...(is_cut ? [`-p tcp ${REFUSE}`] : []),
    ...allowed,
    ...nameservers
      .filter((address) => familyOf(address) === family)
      .map((address) => `${TCP} -d ${address} --dport 53 -j RETURN`),
    ...refused,
    // What is left is public, but may be this machine: there, only what serves the public anyway.
    ...edge_ports.map((port) => `${TCP} --dport ${port} -j RETURN`),
    `${TCP} -m addrtype --dst-type LOCAL ${REFUSE}`,
  ]
}
