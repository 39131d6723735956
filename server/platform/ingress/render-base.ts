import { MAINTENANCE_PAGE, PAGES } from './pages.ts'
import type { EdgeSettings } from './render.ts'

/** The rules that no route changes: what listens, what is refused, what every app is told about its client. */
export function renderBase(settings: EdgeSettings): Map<string, string> {
  const files = new Map([['config/00-edge.cfg', renderEdge(settings)]])
  files.set('pages/maintenance.html', MAINTENANCE_PAGE)
  for (const [status, page] of Object.entries(PAGES)) files.set(`pages/${status}.http`, page)
  return files
}

function renderEdge(settings: EdgeSettings): string {
  return [...GLOBAL, '', ...DEFAULTS, '', ...renderHttp(settings), '', ...renderHttps(settings), '', ...HANDOVER, '', ...APP, ...renderForwarding(settings), ''].join('\n')
}

/**
 * `quiet` still prints what is wrong with a configuration; without it a reload prints four lines per backend. A listening
 * port is ours alone (`noreuseport`): otherwise two installations could share one without noticing.
 */
const GLOBAL = [
  'global',
  '  quiet',
  '  user haproxy',
  '  group haproxy',
  '  fd-hard-limit 100000',
  '  noreuseport',
  '  mworker-max-reloads 20',
  '  tune.bufsize 16384',
  '  tune.http.maxhdr 128',
  '  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets',
  '  ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305',
]

const DEFAULTS = [
  'defaults edge',
  '  mode http',
  '  timeout connect 2s',
  '  timeout client 60s',
  '  timeout client-fin 30s',
  '  timeout server 5m',
  '  timeout tunnel 1h',
  '  timeout http-request 10s',
  '  timeout http-keep-alive 75s',
  '  option dontlognull',
  '  option abortonclose',
  '  option http-no-delay',
  '  option idle-close-on-response',
  '  option http-restrict-req-hdr-names delete',
  '  retries 3',
  '  option redispatch 1',
  ...Object.keys(PAGES).map((status) => `  errorfile ${status} /edge/pages/${status}.http`),
]

/** Where an old worker hands requests to the new one: inside the container only, so that nobody else can claim to be a client. */
const handoverSocket = (proto: 'http' | 'https') => `unix@/run/portreeve/${proto}.sock`

/** A socket for each family: on a common one IPv4 clients would look like `::ffff:192.0.2.1`. */
const renderBinds = ({ ipv6 }: EdgeSettings, port: number, options = ''): string[] => [`  bind :${port}${options}`, ...(ipv6 ? [`  bind :::${port} v6only${options}`] : [])]

function renderHttp(settings: EdgeSettings): string[] {
  const port = settings.https_port === 443 ? '' : `:${settings.https_port}`
  const unless = settings.trusted_proxies.length > 0 ? ` !{ src ${settings.trusted_proxies.join(' ')} }` : ''
  return [
    'frontend http from edge',
    ...renderBinds(settings, settings.http_port),
    ...renderRouting('http'),
    '  http-request set-var-fmt(txn.challenge) %[var(txn.host)]%[path] if { path_beg /.well-known/acme-challenge/ }',
    '  http-request set-var(txn.answer) var(txn.challenge),map(/edge/maps/challenges.map) if { var(txn.challenge) -m found }',
    '  http-request return status 200 content-type text/plain lf-string %[var(txn.answer)] if { var(txn.answer) -m found }',
    `  http-request redirect location https://%[var(txn.host)]${port}%[pathq] code 308 if { var(txn.backend),map(/edge/maps/force-https.map) -m found } !{ stopping }${unless}`,
    ...renderChoice('http'),
  ]
}

function renderHttps(settings: EdgeSettings): string[] {
  return [
    'frontend https from edge',
    ...renderBinds(settings, settings.https_port, ' ssl crt /edge/certificates/default.pem crt-list /edge/certificates/list.txt alpn h2,http/1.1'),
    ...renderRouting('https'),
    ...renderChoice('https'),
  ]
}

/** Finds the backend of a request by its host name. */
function renderRouting(proto: 'http' | 'https'): string[] {
  return [
    `  bind ${handoverSocket(proto)} user haproxy accept-proxy`,
    '  option disable-h2-upgrade',
    `  http-request set-var(txn.proto) str(${proto})`,
    '  http-request return status 405 default-errorfiles if METH_TRACE or METH_CONNECT',
    '  http-request set-var(txn.host) req.hdr(host),host_only,lower,rtrim(.)',
    '  http-request set-var(txn.backend) var(txn.host),map(/edge/maps/hosts.map)',
    '  http-request set-var(txn.backend) var(txn.host),field(2,.,0),map(/edge/maps/wildcards.map) if !{ var(txn.backend) -m found }',
  ]
}

function renderChoice(proto: 'http' | 'https'): string[] {
  return [
    '  http-request return status 404 default-errorfiles if !{ stopping } !{ var(txn.backend) -m found }',
    `  use_backend handover-${proto} if { stopping }`,
    '  use_backend %[var(txn.backend)]',
  ]
}

/**
 * After a reload the old process knows only the servers of that moment. A connection that it still holds may send one more
 * request, maybe after its server is gone: that request goes through the new process.
 */
const HANDOVER = (['http', 'https'] as const).flatMap((proto) => [
  `backend handover-${proto} from edge`,
  `  server next ${handoverSocket(proto)} send-proxy-v2`,
])

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
