import type { EdgeSettings } from '../edge-settings.ts'

/**
 * Connections that one address may have open, a tenth of what the edge has in all: else one machine, with a request
 * a minute on each, would keep every app from everybody. A network of IPv6 addresses as one household has it is one.
 */
const MOST_OF_ADDRESS = 5_000
/**
 * Those of HTTP/2 and 3 among them. Each may hold half a megabyte of answers that its client does not read, and a
 * browser needs one for all that it asks for.
 */
const MOST_MULTIPLEXED = 1_000
/**
 * Requests that an address has under way over HTTP/2 and 3, where a connection carries a hundred: each holds the
 * beginning of an answer that nobody reads, 24 KB, which of 5,000 connections were twelve gigabytes.
 */
const MOST_UNDER_WAY = 5_000
/**
 * Requests that an address has under way at Portreeve itself, WebSockets too. They are all worked on by one thread: the
 * thousands that the edge lets through for apps held up everybody else's for seconds.
 */
const MOST_AT_PLATFORM = 500

/** Where the edge counts: as many addresses as it has connections. */
const TABLES = {
  clients: 'clients',
  multiplexed: 'multiplexed',
  requests: 'requests',
  platform: 'platform',
}
const KEY = 'src,ipmask(32,64)'

/** One thing more is counted of a request than HAProxy has room for by itself. */
export const CROWD_GLOBAL = '  tune.stick-counters 4'

/** The tables themselves, which have no server. */
export const CROWD = Object.values(TABLES).flatMap((table) => [
  `backend ${table}`,
  '  stick-table type ipv6 size 100k expire 1m store conn_cur',
])

const fromNoProxy = (trusted_proxies: readonly string[]): string =>
  trusted_proxies.length > 0 ? ` !{ src ${trusted_proxies.join(' ')} }` : ''

/** In the words of the API, since whoever asks for Portreeve itself may be a program. */
const TOO_MANY = JSON.stringify({
  error: { code: 'RATE_LIMITED', message: 'Too many requests at once. Send this one again in a moment.' },
})

/** Refuses what an address asks of Portreeve itself beyond its share. */
export const renderPlatformCrowd = ({ trusted_proxies }: Pick<EdgeSettings, 'trusted_proxies'>): string[] => [
  `  http-request track-sc3 ${KEY} table ${TABLES.platform} if proof${fromNoProxy(trusted_proxies)}`,
  `  http-request return status 429 content-type application/json hdr cache-control no-store hdr retry-after 1 string '${TOO_MANY}' if proof { sc_conn_cur(3,${TABLES.platform}) gt ${MOST_AT_PLATFORM} }`,
]

/**
 * Ends what one address opens beyond its share, before anything is read of it. It is looked up once for a
 * connection, and for each request where one carries many. A proxy that is trusted has many clients behind it, and
 * bounds them itself.
 */
export function renderCrowd(
  { trusted_proxies }: Pick<EdgeSettings, 'trusted_proxies'>,
  proto: 'http' | 'https',
): string[] {
  const counted = fromNoProxy(trusted_proxies)
  const { clients, multiplexed, requests } = TABLES
  const connections = [
    `  tcp-request connection track-sc0 ${KEY} table ${clients}${counted && ` if${counted}`}`,
    `  tcp-request connection reject if { sc0_conn_cur(${clients}) gt ${MOST_OF_ADDRESS} }`,
  ]
  if (proto === 'http') return connections
  return [
    ...connections,
    `  tcp-request session track-sc1 ${KEY} table ${multiplexed} if { ssl_fc_alpn h2 h3 }${counted}`,
    `  tcp-request session reject if { sc1_conn_cur(${multiplexed}) gt ${MOST_MULTIPLEXED} }`,
    `  http-request track-sc2 ${KEY} table ${requests} if { fc_http_major ge 2 }${counted}`,
    `  http-request reject if { fc_http_major ge 2 } { sc2_conn_cur(${requests}) gt ${MOST_UNDER_WAY} }`,
  ]
}
