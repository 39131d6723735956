import type { EdgeSettings } from '../edge-settings.ts'

/** Whether the edge's build speaks QUIC is for the edge to know: these lines count only where it does. */
const withQuic = (lines: string[]): string[] => ['.if feature(QUIC)', ...lines, '.endif']

/** A build on OpenSSL needs to be told that it may do without early data. */
export const HTTP3_GLOBAL = ['.if feature(QUIC_OPENSSL_COMPAT)', '  limited-quic', '.endif']

/**
 * Handshakes that may be under way at once are half of this. They are counted for no address, because a connection is
 * told of once its handshake has ended, and each takes 85 KB and one of the connections of all: an address that began
 * them and never ended any had half of the edge. Whoever is not heard meanwhile comes over TCP.
 */
const QUEUE = 2_000

/** HTTP/3 on the port of HTTPS, and the header by which clients that came over TCP learn of it. */
export function renderHttp3({ https_port, ipv6 }: EdgeSettings, tls: string): string[] {
  return withQuic([
    `  bind quic4@:${https_port}${tls} alpn h3 backlog ${QUEUE}`,
    ...(ipv6 ? [`  bind quic6@:${https_port} v6only${tls} alpn h3 backlog ${QUEUE}`] : []),
    `  http-after-response set-header alt-svc 'h3=":${https_port}"; ma=3600'`,
  ])
}
