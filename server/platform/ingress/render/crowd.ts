import type { EdgeSettings } from '../edge-settings.ts'

/**
 * Connections that one address may have open, a tenth of what the edge has in all: else one machine, with a request
 * a minute on each, would keep every app from everybody. A network of IPv6 addresses as one household has it is one.
 */
const MOST_OF_ADDRESS = 5_000
/** Where the edge counts them: as many addresses as it has connections. */
const TABLE = 'clients'

/** The table itself, which has no server. */
export const CROWD = [`backend ${TABLE}`, '  stick-table type ipv6 size 100k expire 1m store conn_cur']

/**
 * Ends what one address opens beyond its share, before anything is read of it. It is looked up once for a
 * connection. A proxy that is trusted has many clients behind it, and bounds them itself.
 */
export function renderCrowd({ trusted_proxies }: Pick<EdgeSettings, 'trusted_proxies'>): string[] {
  const unless = trusted_proxies.length > 0 ? ` if !{ src ${trusted_proxies.join(' ')} }` : ''
  return [
    `  tcp-request connection track-sc0 src,ipmask(32,64) table ${TABLE}${unless}`,
    `  tcp-request connection reject if { sc0_conn_cur(${TABLE}) gt ${MOST_OF_ADDRESS} }`,
  ]
}
