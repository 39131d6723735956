import ipaddr from 'ipaddr.js'
import { isInside, parseAddress, plainAddress } from './addresses.ts'

/** The operator's list of hosts on private addresses, compiled. */
export interface AllowList {
  /** True when the entry names this host (or a domain above it with `*.`), for this port or for all. */
  hasName(host: string, port: number): boolean
  /** True when an address or network of the list holds this address, for this port or for all. */
  hasAddress(address: string, port: number): boolean
  /** Networks of the list in CIDR notation, with the port that they are listed for. */
  readonly networks: readonly { network: string; port?: number }[]
  /** Names of the list that can be looked up, those of wildcards left out. */
  readonly names: readonly { name: string; port?: number }[]
}

interface NameRule {
  name: string
  wildcard: boolean
  port?: number
}
interface NetworkRule {
  network: [ipaddr.IPv4 | ipaddr.IPv6, number]
  port?: number
}

/** Splits `host:port`; an IPv6 address needs brackets to carry a port. */
function splitPort(item: string): { host: string; port?: number } {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(item)
  if (bracketed) return { host: bracketed[1]!, ...(bracketed[2] ? { port: Number(bracketed[2]) } : {}) }
  const plain = /^([^:]+):(\d{1,5})$/.exec(item)
  return plain ? { host: plain[1]!, port: Number(plain[2]) } : { host: item }
}

function networkOf(host: string): [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined {
  if (host.includes('/')) return ipaddr.isValidCIDR(host) ? ipaddr.parseCIDR(host) : undefined
  const address = parseAddress(host)
  if (!address) return undefined
  const plain = plainAddress(address)
  return [plain, plain.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Compiles `host`, `host:port`, `*.suffix`, an address or a network such as `10.0.0.0/8` (both with an
 * optional port).
 */
export function compileAllowList(items: readonly string[]): AllowList {
  const names: NameRule[] = []
  const networks: NetworkRule[] = []
  for (const item of items) {
    const { host, port } = splitPort(item.toLowerCase())
    const network = networkOf(host)
    const of_port = port === undefined ? {} : { port }
    if (network) networks.push({ network, ...of_port })
    else
      names.push({
        name: host.replace(/^\*\./, '').replace(/\.$/, ''),
        wildcard: host.startsWith('*.'),
        ...of_port,
      })
  }
  const portFits = (rule: { port?: number }, port: number) => rule.port === undefined || rule.port === port
  const ofPort = ({ port }: { port?: number }) => (port === undefined ? {} : { port })
  return {
    networks: networks.map((rule) => ({
      network: `${rule.network[0].toString()}/${rule.network[1]}`,
      ...ofPort(rule),
    })),
    names: names.filter((rule) => !rule.wildcard).map((rule) => ({ name: rule.name, ...ofPort(rule) })),
    hasName: (host, port) =>
      names.some(
        (rule) =>
          portFits(rule, port) && (rule.wildcard ? host.endsWith(`.${rule.name}`) : host === rule.name),
      ),
    hasAddress: (address, port) =>
      networks.some((rule) => portFits(rule, port) && isInside(address, rule.network)),
  }
}
