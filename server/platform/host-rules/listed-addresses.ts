import { createNames, type FindAddresses } from '#server/platform/dns/names'
import { classifyAddress } from '#server/platform/outbound/addresses'
import { compileAllowList } from '#server/platform/outbound/allow-list'
import type { Opening } from './egress-rules.ts'

/** Addresses of the hosts that the operator listed, as far as they are known. */
export interface ListedAddresses {
  openings(): Opening[]
  /** Looks the listed names up again; takes a few seconds at most. */
  lookUp(): Promise<void>
}

const DNS_TIMEOUT_MS = 3_000

/** Networks of the list as they are, and what DNS says of its names. */
export function createListedAddresses(
  allowed_private_hosts: readonly string[],
  find: FindAddresses = createNames(),
): ListedAddresses {
  const list = compileAllowList(allowed_private_hosts)
  let looked_up: Opening[] = []
  const addressesOf = (name: string) => find(name, AbortSignal.timeout(DNS_TIMEOUT_MS)).catch(() => [])
  return {
    openings: () => [...list.networks, ...looked_up],
    async lookUp() {
      const found = await Promise.all(
        list.names.map(async ({ name, port }) =>
          (await addressesOf(name))
            .filter(({ address }) => classifyAddress(address) === 'private')
            .map(({ address }) => ({ network: address, ...(port === undefined ? {} : { port }) })),
        ),
      )
      looked_up = found.flat()
    },
  }
}
