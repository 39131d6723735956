import { networkInterfaces } from 'node:os'
import type { FindAddresses } from '#server/platform/dns/names'
import { classifyAddress, isSameAddress, parseAddress } from '#server/platform/outbound/addresses'
import { OutboundError, type CheckedAddress, type OutboundPolicy } from '#server/platform/outbound/outbound'

const LOOPBACK = /^(127\.|::1$)/

/**
 * Where a server may be that an administrator adds: anywhere but on this machine, and nowhere that no server is. Private
 * networks are where most of them are.
 */
export function createNodePolicy(
  find: FindAddresses,
  own: () => readonly string[] = () =>
    Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address)),
): Pick<OutboundPolicy, 'resolve'> {
  function check(host: string, address: string): void {
    if (LOOPBACK.test(address) || own().some((one) => isSameAddress(one, address)))
      throw new OutboundError('forbidden', `${host} is this server itself.`)
    if (classifyAddress(address) === 'unusual')
      throw new OutboundError('forbidden', `${host} leads to an address at which no server can be.`)
  }
  return {
    async resolve(host, _port, signal): Promise<CheckedAddress[]> {
      const found = parseAddress(host) ? [{ address: host }] : await named(host, find, signal)
      // The tunnel to a member is made between addresses of IPv4.
      const addresses = found.filter(({ address }) => !address.includes(':'))
      if (addresses.length === 0)
        throw new OutboundError(
          'unknown_host',
          `${host} has no IPv4 address, by which servers reach each other.`,
        )
      for (const { address } of addresses) check(host, address)
      return addresses.map(({ address }) => ({ address, family: 4 }))
    },
  }
}

async function named(host: string, find: FindAddresses, signal?: AbortSignal) {
  return find(host, signal).catch((cause: unknown) => {
    throw new OutboundError('unknown_host', `No address of ${host} was found.`, { cause })
  })
}
