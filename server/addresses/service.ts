import { isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Config } from '#server/kernel/config'
import { isPublicAddress } from '#server/platform/outbound/addresses'
import { isContainerBridge } from '#server/platform/outbound/policy'

/** The first public IPv4 address of this host, if it has one. */
function publicAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((found) => found && found.family === 'IPv4' && !found.internal && isPublicAddress(found.address))
    ?.address
}

/**
 * Every address of this host that others may use, without those of the link, of the machine itself
 * and of its containers.
 */
export const usableAddresses = (interfaces: ReturnType<typeof networkInterfaces>): string[] =>
  Object.entries(interfaces)
    .filter(([name]) => !isContainerBridge(name))
    .flatMap(([, found]) => found ?? [])
    .flatMap(({ internal, address }) => (internal || /^(fe80:|169\.254\.)/i.test(address) ? [] : [address]))

/**
 * The address that somebody else reaches this host at, as it stands in a URL: the one it listens
 * on, else its first. `install.sh` prints the same.
 */
export function reachedAt(host: string, interfaces: ReturnType<typeof networkInterfaces>): string {
  const own = usableAddresses(interfaces)
  const address = ['', '0.0.0.0', '::', '[::]'].includes(host)
    ? (own.find((one) => !one.includes(':')) ?? own[0] ?? '127.0.0.1')
    : host
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address
}

/**
 * The IPv4 address of this host in its local network; undefined when it listens for itself only, or
 * has none.
 */
export function localAddress(
  host: string,
  interfaces: ReturnType<typeof networkInterfaces>,
): string | undefined {
  const address = reachedAt(host, interfaces)
  return isIPv4(address) && !address.startsWith('127.') ? address : undefined
}

/** A name that leads to an address, and so do all names below it. */
export const addressDomain = (address: string | undefined): string =>
  address === undefined ? 'localhost' : `${address}.sslip.io`

/** How long the addresses of this host are taken for what they were, in milliseconds. */
const KEPT_MS = 1000

/**
 * The interfaces of this host as they were at most a second ago. Each container is one more, the
 * kernel lists them all, and each request with a cookie asks.
 */
function createInterfaces(): typeof networkInterfaces {
  let known = networkInterfaces()
  let until = performance.now() + KEPT_MS
  return () => {
    if (performance.now() >= until) {
      known = networkInterfaces()
      until = performance.now() + KEPT_MS
    }
    return known
  }
}

/** Names under which this installation and its apps are reached. Source: api.md "Domains". */
export function createAddresses(
  config: Config,
  setting: () => { base_domain: string | null; dashboard_domain: string | null },
) {
  const address = publicAddress()
  const interfaces = createInterfaces()
  /**
   * Where the dashboard is by somebody's word: the domain of the settings, which the edge serves
   * over HTTPS, else the environment's.
   */
  const chosen_url = () => {
    const { dashboard_domain } = setting()
    return dashboard_domain === null
      ? config.public_url
      : `https://${dashboard_domain}${config.https_port === 443 ? '' : `:${config.https_port}`}`
  }
  return {
    /**
     * What is chosen, by default in the settings, else the environment, else
     * `<public address>.sslip.io`, else the same of the address in the local network, so that other
     * machines of it reach the apps, else `localhost`.
     */
    base_domain: (chosen: string | null = setting().base_domain) =>
      chosen ?? config.base_domain ?? addressDomain(address ?? localAddress(config.host, interfaces())),
    chosen_url,
    /**
     * Where names of this installation should lead: what is public of this host, else, on a private
     * network, all it has.
     */
    of_server(): string[] {
      const own = usableAddresses(interfaces())
      const reachable = own.filter(isPublicAddress)
      return reachable.length > 0 ? reachable : own
    },
    /** What is set and works, and should be another way. */
    warnings(): string[] {
      const { dashboard_domain } = setting()
      const base_domain = this.base_domain()
      return dashboard_domain?.endsWith(`.${base_domain}`)
        ? [
            `The dashboard ${dashboard_domain} lies below the base domain of apps, ${base_domain}: an app below it counts as the same site, and can set cookies for it. Give the dashboard a name outside of ${base_domain}.`,
          ]
        : []
    },
    public_url: () => chosen_url() ?? `http://${reachedAt(config.host, interfaces())}:${config.port}`,
  }
}
export type Addresses = ReturnType<typeof createAddresses>
