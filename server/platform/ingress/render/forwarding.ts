import type { EdgeSettings } from '../edge-settings.ts'

/**
 * Headers in which something in front of an app says who the client is. Only the edge, and proxies it trusts,
 * may say so.
 */
const ALWAYS_TAKEN = ['proxy', 'forwarded', 'http2-settings', 'x-portreeve-edge']
const TAKEN = [
  'x-forwarded-.*',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'x-original-url',
  'x-rewrite-url',
]
const taking = (names: string[]): string => `  http-request del-header ^(${names.join('|')})$ -m reg`

/**
 * What the app is told, in one rule, because each costs; a line break in what is set begins the next header.
 * Nothing in it is free text: the host of a request that was read has no line break, and what a variable has
 * would be encoded.
 */
const TELLING =
  'x-forwarded-for "%[var(sess.client)]\\r\\nx-real-ip: %[var(sess.client)]\\r\\nx-forwarded-proto: %f\\r\\nx-forwarded-port: %fp\\r\\nx-forwarded-host: %[req.hdr(host)]'

/**
 * Whether the client came without HTTPS. A proxy that is trusted knows; one that says nothing is not asked
 * for HTTPS, since it could not change anything and its client would go in a circle.
 */
const PLAIN = [
  '  acl plain var(txn.plain) -m bool',
  '  http-request set-var(txn.plain) bool(true) if { fe_name http } !via_trusted',
  '  http-request set-var(txn.plain) bool(true) if via_trusted { req.hdr(x-forwarded-proto,1) -m str http }',
]

/**
 * What a client of a trusted proxy sees is the proxy: that it speaks HTTPS there, for headers that are sent
 * over HTTPS only, and the port, which is that of the scheme unless the proxy says another. Apps build
 * addresses from it, so the port of the edge behind the proxy would be wrong.
 */
const SEEN = [
  '  acl told_https var(txn.told_https) -m bool',
  '  http-request set-var(txn.told_https) bool(true) if via_trusted { req.hdr(x-forwarded-proto,1) -m str https }',
  '  acl told_port req.hdr(x-forwarded-port) -m found',
  '  http-request set-header X-Forwarded-Port 443 if told_https !told_port',
  '  http-request set-header X-Forwarded-Port 80 if via_trusted plain !told_port',
]

/**
 * The client is the last address in `X-Forwarded-For` that is not a trusted proxy itself, up to three proxies
 * in a row.
 */
export function renderForwarding(settings: EdgeSettings): string[] {
  if (settings.trusted_proxies.length === 0) {
    return [
      '  acl plain fe_name http',
      taking([...ALWAYS_TAKEN, ...TAKEN]),
      '  acl identified req.fhdr(x-request-id) -m found',
      `  http-request add-header ${TELLING}\\r\\nx-request-id: %[unique-id]" unless identified`,
      `  http-request add-header ${TELLING}" if identified`,
    ]
  }
  return [
    `  acl trusted src ${settings.trusted_proxies.join(' ')}`,
    '  acl via_trusted var(txn.via_trusted) -m bool',
    '  http-request set-var(txn.via_trusted) bool(true) if trusted',
    ...PLAIN,
    taking(ALWAYS_TAKEN),
    `${taking(TAKEN)} unless via_trusted`,
    '  http-request set-var(txn.peer) src',
    ...[-1, -2, -3].map(
      (hop) =>
        `  http-request set-src req.hdr_ip(x-forwarded-for,${hop}) if trusted { req.hdr_ip(x-forwarded-for,${hop}) -m found }`,
    ),
    '  http-request add-header X-Forwarded-For %[var(txn.peer)]',
    '  http-request set-header X-Real-IP %[src]',
    '  http-request set-header X-Forwarded-Proto %[fe_name] unless via_trusted { req.hdr(x-forwarded-proto) -m str http https }',
    '  http-request set-header X-Forwarded-Host %[req.hdr(host)] unless via_trusted { req.hdr(x-forwarded-host) -m found }',
    ...SEEN,
    '  http-request set-header X-Forwarded-Port %[dst_port] unless via_trusted told_port',
    '  http-request set-header X-Request-Id %[unique-id] unless { req.hdr(x-request-id) -m found }',
  ]
}
