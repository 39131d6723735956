import { BY_PATH, CHALLENGES_MAP, HOSTS_MAP, PATHS_MAP, WILDCARDS_MAP } from './maps.ts'
import type { EdgeSettings } from '../edge-settings.ts'
import { CROWD, renderCrowd } from './crowd.ts'
import { renderHttp3 } from './http3.ts'
import { renderLog, UNLOGGED } from './log.ts'

/** What listens, how a request finds its route, and how an old process hands requests to the new one. */
export const renderFrontends = (settings: EdgeSettings): string[] => [
  ...renderHttp(settings),
  '',
  ...renderHttps(settings),
  '',
  ...CROWD,
  '',
  ...HANDOVER,
]

/**
 * Where an old worker hands requests to the new one: inside the container only, so that nobody else can claim
 * to be a client.
 */
const handoverSocket = (proto: 'http' | 'https') => `unix@/run/portreeve/${proto}.sock`

/** Where a request ends that no route wants. */
const NO_ROUTE = 'nowhere'

/** A socket for each family: on a common one IPv4 clients would look like `::ffff:192.0.2.1`. */
const renderBinds = ({ ipv6 }: EdgeSettings, port: number, options = ''): string[] => [
  `  bind :${port}${options}`,
  ...(ipv6 ? [`  bind :::${port} v6only${options}`] : []),
]

function renderHttp(settings: EdgeSettings): string[] {
  return [
    'frontend http from edge',
    ...renderBinds(settings, settings.http_port),
    ...renderRouting(
      settings,
      'http',
      ['  acl challenge path_beg /.well-known/acme-challenge/'],
      ' !challenge',
    ),
    '  http-request set-var-fmt(txn.place) %[var(txn.host)]%[path] if challenge',
    `  http-request set-var(txn.answer) var(txn.place),map(/edge/${CHALLENGES_MAP}) if challenge`,
    '  http-request return status 200 content-type text/plain lf-string %[var(txn.answer)] if { var(txn.answer) -m found }',
    ...renderChoice('http'),
  ]
}

const TLS = ' ssl crt /edge/certificates/default.pem crt-list /edge/certificates/list.txt'

function renderHttps(settings: EdgeSettings): string[] {
  return [
    'frontend https from edge',
    ...renderBinds(settings, settings.https_port, `${TLS} alpn h2,http/1.1`),
    ...renderHttp3(settings, TLS),
    ...renderRouting(settings, 'https'),
    ...renderChoice('https'),
  ]
}

/**
 * What a wildcard stands for: a label as DNS has it. Anything else is written by hand: what is longer than a line of the
 * log would keep the request from being counted, and a slash would end the host of an address that is made of it.
 */
const LABEL = '^[a-z0-9_-]{1,63}[.]'

/**
 * Finds the route of a request by its host name; most requests write it as it stands in the map and have it
 * with that. Where several routes share a name the path decides. It is compared as an app might understand
 * it: decoded, slashes joined, parameters left out. One that could climb is refused.
 */
function renderRouting(
  settings: EdgeSettings,
  proto: 'http' | 'https',
  acls: string[] = [],
  unless = '',
): string[] {
  return [
    `  bind ${handoverSocket(proto)} user haproxy accept-proxy`,
    ...renderCrowd(settings, proto),
    ...renderLog(settings),
    '  option disable-h2-upgrade',
    '  acl routed var(txn.route) -m beg b',
    `  acl by_path var(txn.route) -m str ${BY_PATH}`,
    '  acl unwanted method TRACE CONNECT',
    ...acls,
    '  http-request set-var(txn.host) req.hdr(host)',
    `  http-request set-var(txn.route) var(txn.host),map(/edge/${HOSTS_MAP})`,
    `  http-request allow if routed !unwanted${unless}`,
    '  http-request return status 405 default-errorfiles if unwanted',
    '  http-request set-var(txn.host) var(txn.host),host_only,lower,rtrim(.)',
    `  http-request set-var(txn.route) var(txn.host),map(/edge/${HOSTS_MAP}) unless { var(txn.route) -m found }`,
    `  http-request set-var(txn.route) var(txn.host),field(2,.,0),map(/edge/${WILDCARDS_MAP}) if !{ var(txn.route) -m found } { var(txn.host) -m reg ${LABEL} }`,
    ...BY_PATH_ROUTING,
  ]
}

const BY_PATH_ROUTING = [
  '  http-request set-var(txn.path) path,url_dec if by_path',
  String.raw`  http-request return status 400 default-errorfiles if by_path { var(txn.path) -m reg [\\x00-\\x1f\\x5c\\x7f]|/\\.\\.?(/|;|$) }`,
  '  http-request set-var(txn.path) "var(txn.path),regsub(;[^/]*,,g),regsub(/+,/,g)" if by_path',
  '  http-request set-var-fmt(txn.place) %[var(txn.host)]%[var(txn.path)]/ if by_path',
  `  http-request set-var(txn.exact) var(txn.host),map(/edge/${HOSTS_MAP}) if by_path`,
  '  http-request set-var-fmt(txn.place) *.%[var(txn.host),field(2,.,0)]%[var(txn.path)]/ if by_path !{ var(txn.exact) -m found }',
  `  http-request set-var(txn.route) var(txn.place),map_beg(/edge/${PATHS_MAP},${NO_ROUTE}) if by_path`,
]

function renderChoice(proto: 'http' | 'https'): string[] {
  return [
    `  use_backend handover-${proto} if { stopping }`,
    '  use_backend %[var(txn.route),field(1,|)]',
    `  default_backend ${NO_ROUTE}`,
  ]
}

/**
 * After a reload the old process knows only the servers of that moment. A connection that it still holds may
 * send one more request, maybe after its server is gone: that request goes through the new process.
 */
const HANDOVER = [
  ...(['http', 'https'] as const).flatMap((proto) => [
    `backend handover-${proto} from edge`,
    UNLOGGED,
    `  server next ${handoverSocket(proto)} send-proxy-v2`,
  ]),
  `backend ${NO_ROUTE} from edge`,
  UNLOGGED,
  '  http-request return status 404 default-errorfiles',
]
