import { ALIASES_MAP, ALLOWED_MAP, RULES_MAP } from './maps.ts'
import { COMPRESSION } from './render-compression.ts'
import { renderErrorPages } from './error-pages.ts'
import { RULE_FIELDS, RULE_FLAGS } from './rules.ts'
import type { EdgeSettings } from './render.ts'

/**
 * The rules of every route: what its app is told about its client, and when the edge answers by itself. A request of a route
 * without rules of its own leaves after the first part.
 */
export function renderApp(settings: EdgeSettings): string[] {
  return [
    ...APP, ...renderErrorPages(), ...COMPRESSION, ...renderForwarding(settings), '  http-request allow if !ruled',
    ...FLAGS, ...renderNames(settings), ...ANSWERS, ...TO_THE_APP,
  ]
}

/**
 * What every backend has in common. A request that surely did not reach the app is sent again. One whose connection broke
 * before any answer came is sent again only when repeating it does no harm, and only where that can happen to an app that is
 * well: there is another server, or the connection idled long enough for the app to close it. Keeping a copy of a request
 * costs a fifth of the throughput. An app must not change to HTTP/2 in clear text, because from then on the edge would see
 * one opaque stream. The rules of a route are one look-up by its backend.
 */
const APP = [
  'defaults app from edge',
  '  balance leastconn',
  '  retry-on conn-failure empty-response',
  '  acl repeatable method GET',
  '  acl replicated nbsrv gt 1',
  '  acl idled req.timer.idle gt 1000',
  '  http-request disable-l7-retry if !replicated !idled or !repeatable',
  '  http-request del-header upgrade if { req.hdr(upgrade) -m sub -i h2c }',
  `  http-request set-var(txn.rules) be_name,map(/edge/${RULES_MAP})`,
  '  acl ruled var(txn.rules) -m found',
]

/** Each rule is tried only if the route has it. */
const FLAGS = Object.entries(RULE_FLAGS).map(([name, flag]) => `  acl ${name} var(txn.rules) -m sub ${flag}`)
const field = (name: keyof typeof RULE_FIELDS): string => `var(txn.rules),field(${RULE_FIELDS[name]},|)`

/** Another name or HTTPS, by the way the request reached the edge; an alias keeps scheme and port that the client sees. */
function renderNames(settings: EdgeSettings): string[] {
  const port = settings.https_port === 443 ? '' : `:${settings.https_port}`
  const believed = settings.trusted_proxies.length > 0
  const unless = believed ? ' !via_trusted' : ''
  const [scheme, seen_port] = believed ? ['%[req.hdr(x-forwarded-proto)]', 'req.hdr(x-forwarded-port)'] : ['%f', 'dst_port']
  return [
    '  acl plain fe_name http',
    '  acl alias var(txn.alias) -m found',
    '  http-request set-var-fmt(txn.named) %[be_name]/%[var(txn.host)] if aliases',
    `  http-request set-var(txn.alias) var(txn.named),map(/edge/${ALIASES_MAP}) if aliases`,
    `  http-request redirect location https://%[var(txn.alias)]${port}%[pathq] code 308 if alias force_https plain${unless}`,
    `  http-request redirect location ${scheme}://%[var(txn.alias)]%[pathq] code 308 if alias { ${seen_port} -m str 80 443 }`,
    `  http-request redirect location ${scheme}://%[var(txn.alias)]:%[${seen_port}]%[pathq] code 308 if alias`,
    `  http-request redirect location https://%[var(txn.host)]${port}%[pathq] code 308 if force_https plain${unless}`,
  ]
}

/** Where the edge answers instead of the app. Credentials are compared as salted digests. */
const ANSWERS = [
  '  http-request return status 503 content-type "text/html; charset=utf-8" hdr cache-control no-store file /edge/pages/maintenance.html if maintenance',
  '  http-request set-var-fmt(txn.from) %[be_name]/4%[src,hex] if allowed { src,hex,length eq 8 }',
  '  http-request set-var-fmt(txn.from) %[be_name]/6%[src,hex] if allowed { src,hex,length eq 32 }',
  `  http-request return status 403 default-errorfiles if allowed !{ var(txn.from),map_beg(/edge/${ALLOWED_MAP}) -m found }`,
  `  http-request set-var(txn.salt) ${field('salt')} if basic_auth`,
  `  http-request set-var(txn.digest) ${field('digest')} if basic_auth`,
  '  http-request auth realm Restricted if basic_auth !{ req.hdr(authorization),hmac(sha256,txn.salt),hex,strcmp(txn.digest) eq 0 }',
  '  http-request del-header authorization if basic_auth',
  '  http-request lua.redirect if redirects',
  '  http-request return status 503 default-errorfiles if { nbsrv eq 0 }',
  '  http-request return status 411 content-type text/plain string "The size of the body must be stated." if body_limit { req.hdr(transfer-encoding) -m found }',
  `  http-request set-var(txn.limit) ${field('body_limit')},add(0) if body_limit`,
  '  http-request return status 413 default-errorfiles if body_limit { req.body_size,sub(txn.limit) gt 0 }',
]

/** What changes on the way to the app and back. A path whose beginning is written in another way than the route's cannot be shortened. */
const TO_THE_APP = [
  `  http-request set-header X-Portreeve-Edge %[${field('proof')}] if proof`,
  `  http-request set-timeout server ${field('timeout')},add(0) if timeout`,
  `  http-request set-var(txn.strip) ${field('strip')} if strip`,
  '  http-request set-var(txn.length) var(txn.strip),length if strip',
  '  http-request return status 400 default-errorfiles if strip !{ path,bytes(0,txn.length),strcmp(txn.strip) eq 0 }',
  '  http-request set-header X-Forwarded-Prefix %[var(txn.strip)] if strip',
  '  http-request set-path %[path,bytes(txn.length)] if strip',
  '  http-request set-path /%[path] if strip !{ path_beg / }',
  '  http-response lua.set_headers if headers',
]

/** Headers in which something in front of an app says who the client is. Only the edge, and proxies it trusts, may say so. */
const ALWAYS_TAKEN = ['proxy', 'forwarded', 'http2-settings', 'x-portreeve-edge']
const TAKEN = ['x-forwarded-.*', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'x-original-url', 'x-rewrite-url']
const taking = (names: string[]): string => `  http-request del-header ^(${names.join('|')})$ -m reg`

/**
 * What the app is told, in one rule: each rule costs two percent of the throughput, whatever it does, and a line break in
 * what is set begins the next header. Nothing in it is free text: the host of a request that was read has no line break.
 */
const TELLING = 'x-forwarded-for "%ci\\r\\nx-real-ip: %ci\\r\\nx-forwarded-proto: %f\\r\\nx-forwarded-port: %fp\\r\\nx-forwarded-host: %[req.hdr(host)]'

/** The client is the last address in `X-Forwarded-For` that is not a trusted proxy itself, up to three proxies in a row. */
function renderForwarding(settings: EdgeSettings): string[] {
  if (settings.trusted_proxies.length === 0) {
    return [
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
    taking(ALWAYS_TAKEN),
    `${taking(TAKEN)} unless via_trusted`,
    '  http-request set-var(txn.peer) src',
    ...[-1, -2, -3].map((hop) => `  http-request set-src req.hdr_ip(x-forwarded-for,${hop}) if trusted { req.hdr_ip(x-forwarded-for,${hop}) -m found }`),
    '  http-request add-header X-Forwarded-For %[var(txn.peer)]',
    '  http-request set-header X-Real-IP %[src]',
    '  http-request set-header X-Forwarded-Proto %[fe_name] unless via_trusted { req.hdr(x-forwarded-proto) -m str http https }',
    '  http-request set-header X-Forwarded-Host %[req.hdr(host)] unless via_trusted { req.hdr(x-forwarded-host) -m found }',
    '  http-request set-header X-Forwarded-Port %[dst_port] unless via_trusted { req.hdr(x-forwarded-port) -m found }',
    '  http-request set-header X-Request-Id %[unique-id] unless { req.hdr(x-request-id) -m found }',
  ]
}
