import type { EdgeSettings } from './render.ts'
import { LOG_OF_FRONTEND, LOG_RULES } from './render-log.ts'

/** What listens, how a request finds its route, and how an old process hands requests to the new one. */
export const renderFrontends = (settings: EdgeSettings): string[] => [...renderHttp(settings), '', ...renderHttps(settings), '', ...HANDOVER]

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
    ...LOG_OF_FRONTEND,
    ...renderRouting('http'),
    ...LOG_RULES,
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
    ...LOG_OF_FRONTEND,
    ...renderRouting('https'),
    ...LOG_RULES,
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
