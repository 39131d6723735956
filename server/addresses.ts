import { networkInterfaces } from 'node:os'
import type { Config } from '#server/kernel/config'
import { isPublicAddress } from '#server/platform/outbound/addresses'

/** The first public IPv4 address of this host, if it has one. */
function publicAddress(): string | undefined {
  return Object.values(networkInterfaces()).flat().find((found) => found && found.family === 'IPv4' && !found.internal && isPublicAddress(found.address))?.address
}

/** Names under which this installation and its apps are reached. Source: api.md "Domains". */
export function createAddresses(config: Config, setting: (key: 'base_domain' | 'public_url') => string | undefined) {
  const address = publicAddress()
  return {
    /** Settings, else the environment, else `<public address>.sslip.io`, else `localhost`. */
    base_domain: () => setting('base_domain') ?? config.base_domain ?? (address ? `${address}.sslip.io` : 'localhost'),
    public_url: () => setting('public_url') ?? config.public_url ?? `http://${address ?? 'localhost'}:${config.port}`,
  }
}
export type Addresses = ReturnType<typeof createAddresses>
