import type { EdgeSettings } from './render.ts'

/** The rules of every route: when it is answered by the edge itself, and what the app is told about its client. */
export const renderApp = (settings: EdgeSettings): string[] => [...APP, ...renderForwarding(settings)]

/**
 * What every backend has in common. A request that surely did not reach the app is sent again to another server; one whose
 * connection broke before any answer came is sent again only when repeating it does no harm. An app must not change to
 * HTTP/2 in clear text, because from then on the edge would see one opaque stream.
 */
const APP = [
  'defaults app from edge',
  '  balance leastconn',
  '  retry-on conn-failure empty-response',
  '  http-request disable-l7-retry if !METH_GET',
  '  http-request return status 503 content-type "text/html; charset=utf-8" hdr cache-control no-store file /edge/pages/maintenance.html if { var(txn.backend),map(/edge/maps/maintenance.map) -m found }',
  '  http-request return status 503 default-errorfiles if { nbsrv eq 0 }',
  '  http-request set-header X-Request-Id %[unique-id] unless { req.hdr(x-request-id) -m found }',
  '  http-request del-header http2-settings',
  '  http-request del-header upgrade if { req.hdr(upgrade) -m sub -i h2c }',
]

/** Headers in which something in front of an app says who the client is. Only the edge, and proxies it trusts, may say so. */
const CLIENT_HEADERS = ['forwarded', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'x-original-url', 'x-rewrite-url']

/** The client is the last address in `X-Forwarded-For` that is not a trusted proxy itself, up to three proxies in a row. */
function renderForwarding(settings: EdgeSettings): string[] {
  const believed = settings.trusted_proxies.length > 0
  const unless = believed ? ' unless trusted' : ''
  const rules = [
    '  http-request del-header proxy',
    '  http-request del-header forwarded',
    ...CLIENT_HEADERS.filter((name) => name !== 'forwarded').map((name) => `  http-request del-header ${name}${unless}`),
    `  http-request del-header x-forwarded- -m beg${unless}`,
  ]
  if (!believed) return [...rules, '  http-request set-header X-Forwarded-For %[src]', ...renderOwn('')]
  return [
    `  acl trusted src ${settings.trusted_proxies.join(' ')}`,
    '  acl via_trusted var(txn.via_trusted) -m bool',
    '  http-request set-var(txn.via_trusted) bool(true) if trusted',
    ...rules.map((rule) => rule.replace('unless trusted', 'unless via_trusted')),
    '  http-request set-var(txn.peer) src',
    ...[-1, -2, -3].map((hop) => `  http-request set-src req.hdr_ip(x-forwarded-for,${hop}) if trusted { req.hdr_ip(x-forwarded-for,${hop}) -m found }`),
    '  http-request add-header X-Forwarded-For %[var(txn.peer)]',
    ...renderOwn('believe'),
  ]
}

/** The headers that say how the client reached the edge; one that a trusted proxy has set already stays. */
function renderOwn(mode: 'believe' | ''): string[] {
  const unless = (condition: string) => (mode === 'believe' ? ` unless via_trusted ${condition}` : '')
  return [
    '  http-request set-header X-Real-IP %[src]',
    `  http-request set-header X-Forwarded-Proto %[var(txn.proto)]${unless('{ req.hdr(x-forwarded-proto) -m str http https }')}`,
    `  http-request set-header X-Forwarded-Host %[req.hdr(host)]${unless('{ req.hdr(x-forwarded-host) -m found }')}`,
    `  http-request set-header X-Forwarded-Port %[dst_port]${unless('{ req.hdr(x-forwarded-port) -m found }')}`,
  ]
}
