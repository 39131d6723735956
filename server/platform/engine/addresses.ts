import { own } from '#server/kernel/own'
import { createHash } from 'node:crypto'
import type { Connection } from './connection.ts'
import type { NetworkInfo } from './networks.ts'
import { formatAddress, parseRange, rangeSize } from './subnets.ts'

interface ListedContainer {
  NetworkSettings?: {
    Networks?: Record<string, { IPAddress?: string; IPAMConfig?: { IPv4Address?: string } | null }>
  }
}

/**
 * Hands out fixed addresses from the upper half of a network's subnet. A fixed address is what lets the edge
 * keep its routes when a container, the engine or the host starts again.
 */
export function createAddresses(
  connection: Connection,
  inspectNetwork: (name: string) => Promise<NetworkInfo[]>,
) {
  /** Handed out by this process and not yet visible in the engine's list. */
  const reserved = new Set<string>()

  async function used(network: string): Promise<Set<string>> {
    const containers = await connection.call<ListedContainer[]>({
      path: '/containers/json',
      query: { all: true, filters: JSON.stringify({ network: [network] }) },
      keep: (entry) => ({ NetworkSettings: (entry as ListedContainer).NetworkSettings }),
    })
    const taken = new Set<string>()
    for (const container of containers) {
      const endpoint = own(container.NetworkSettings?.Networks, network)
      if (endpoint?.IPAMConfig?.IPv4Address) taken.add(endpoint.IPAMConfig.IPv4Address)
      if (endpoint?.IPAddress) taken.add(endpoint.IPAddress)
    }
    return taken
  }

  return {
    /**
     * Reserves an address for a container name until `release` is called; undefined in a network without an
     * upper half of its own (not made by us). `refused` holds addresses that the engine did not accept.
     */
    async reserve(
      network: string,
      container_name: string,
      refused: ReadonlySet<string>,
    ): Promise<string | undefined> {
      const [[info], taken] = await Promise.all([inspectNetwork(network), used(network)])
      const config = info?.IPAM.Config?.find(({ Subnet, IPRange }) => Subnet && IPRange)
      if (!config?.Subnet || !config.IPRange) return undefined
      const subnet = parseRange(config.Subnet)
      const dynamic = parseRange(config.IPRange)
      if (config.Gateway) taken.add(config.Gateway)
      const size = rangeSize(subnet)
      const start = createHash('sha256').update(container_name).digest().readUInt32BE() % size
      for (let step = 0; step < size; step++) {
        const number = subnet.first + ((start + step) % size)
        const is_dynamic = number >= dynamic.first && number < dynamic.first + rangeSize(dynamic)
        // The ends of a /24 are ordinary addresses here, but old network code takes them for something else.
        const is_last = number === subnet.first + size - 1
        if (is_dynamic || is_last || number % 256 === 0 || number % 256 === 255) continue
        const address = formatAddress(number)
        if (taken.has(address) || reserved.has(`${network}/${address}`) || refused.has(address)) continue
        reserved.add(`${network}/${address}`)
        return address
      }
      return undefined
    },
    release(network: string, address: string | undefined): void {
      if (address) reserved.delete(`${network}/${address}`)
    },
  }
}
export type Addresses = ReturnType<typeof createAddresses>
