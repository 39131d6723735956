import { ALIASES_MAP, ALLOWED_MAP, RULES_MAP } from './maps.ts'
import { COMPRESSION } from './compression.ts'
import { renderPlatformCrowd } from './crowd.ts'
import { renderErrorPages } from './error-pages.ts'
import { renderForwarding } from './forwarding.ts'
import { RULE_FIELDS, RULE_FLAGS } from './rules.ts'
import type { EdgeSettings } from '../edge-settings.ts'

/**
 * The rules of every route: what its app is told about its client, and when the edge answers by itself. A
 * request of a route without rules of its own leaves after the first part.
 */
export function renderApp(settings: EdgeSettings): string[] {
  return [
    ...APP,
    ...renderErrorPages(),
    ...COMPRESSION,
    ...renderForwarding(settings),
    ...RULED,
    ...FLAGS,
    ...renderNames(settings),
    ...renderPlatformCrowd(settings),
    ...ANSWERS,
    ...TO_THE_APP,
  ]
}

/**
 * What every backend has in common. A request that surely did not reach the app is sent again. One whose
 * connection broke before any answer came is sent again only when repeating it does no harm, and only where
 * that can happen to an app that is well: the connection idled long enough for the app to close it. That
 * there is another server is no reason, because a request that made one end would make the next one end too.
 * Keeping a copy of a request costs a fifth of the throughput. An app must not change to HTTP/2 in clear
 * text, because from then on the edge would see one opaque stream.
 */
const APP = [
  'defaults app from edge',
  '  balance leastconn',
  '  retry-on conn-failure empty-response',
  '  acl repeatable method GET',
  '  acl idled req.timer.idle gt 1000',
  '  http-request disable-l7-retry if !idled or !repeatable',
  '  http-request del-header upgrade if { req.hdr(upgrade) -m sub -i h2c }',
]

/** Most requests leave here: their route has no rules, or insists on HTTPS and has it. */
const RULED = [
  '  acl ruled var(txn.route) -m sub !',
  '  acl only_secure var(txn.route) -m end |!h',
  '  http-request allow if !ruled',
  '  http-request allow if only_secure !plain',
  `  http-request set-var(txn.rules) be_name,map(/edge/${RULES_MAP})`,
]

/** Each rule is tried only if the route has it. */
const FLAGS = Object.entries(RULE_FLAGS).map(([name, flag]) => `  acl ${name} var(txn.rules) -m sub ${flag}`)
const field = (name: keyof typeof RULE_FIELDS): string => `var(txn.rules),field(${RULE_FIELDS[name]},|)`

/**
 * Another name or HTTPS, by the way the request reached the edge; an alias keeps scheme and port that the
 * client sees. HTTPS of a trusted proxy has its usual port: that of the edge is behind it.
 */
function renderNames(settings: EdgeSettings): string[] {
  const port = settings.https_port === 443 ? '' : `:${settings.https_port}`
  const believed = settings.trusted_proxies.length > 0
  const [scheme, seen_port] = believed
    ? ['%[req.hdr(x-forwarded-proto)]', 'req.hdr(x-forwarded-port)']
    : ['%f', 'dst_port']
  const secured = (name: string): string[] => [
    ...(believed && port
      ? [
          `  http-request redirect location https://%[var(txn.${name})]%[pathq] code 308 if ${name === 'alias' ? 'alias ' : ''}force_https plain via_trusted`,
        ]
      : []),
    `  http-request redirect location https://%[var(txn.${name})]${port}%[pathq] code 308 if ${name === 'alias' ? 'alias ' : ''}force_https plain`,
  ]
  return [
    '  acl alias var(txn.alias) -m found',
    '  http-request set-var-fmt(txn.named) %[be_name]/%[var(txn.host)] if aliases',
    `  http-request set-var(txn.alias) var(txn.named),map(/edge/${ALIASES_MAP}) if aliases`,
    ...secured('alias'),
    `  http-request redirect location ${scheme}://%[var(txn.alias)]%[pathq] code 308 if alias { ${seen_port} -m str 80 443 }`,
    `  http-request redirect location ${scheme}://%[var(txn.alias)]:%[${seen_port}]%[pathq] code 308 if alias`,
    ...secured('host'),
  ]
}

/** Where the edge answers instead of the app. Credentials are compared as salted digests. */
const ANSWERS = [
  '  http-request return status 503 default-errorfiles if own_page',
  '  http-request return status 503 content-type "text/html; charset=utf-8" hdr cache-control no-store hdr x-content-type-options nosniff hdr retry-after 10 file /edge/pages/maintenance.html if maintenance',
  '  http-request set-var-fmt(txn.from) %[be_name]/4%[src,hex] if allowed { src,hex,length eq 8 }',
  '  http-request set-var-fmt(txn.from) %[be_name]/6%[src,hex] if allowed { src,hex,length eq 32 }',
  `  http-request return status 403 default-errorfiles if allowed !{ var(txn.from),map_beg(/edge/${ALLOWED_MAP}) -m found }`,
  `  http-request set-var(txn.salt) ${field('salt')} if basic_auth`,
  `  http-request set-var(txn.digest) ${field('digest')} if basic_auth`,
  '  http-request auth realm Restricted if basic_auth !{ req.hdr(authorization),hmac(sha256,txn.salt),hex,strcmp(txn.digest) eq 0 }',
  '  http-request del-header authorization if basic_auth',
  '  http-request lua.redirect if redirects',
  '  http-request return status 411 content-type text/plain string "The size of the body must be stated." if body_limit { req.hdr(transfer-encoding) -m found }',
  // Over HTTP/2 and 3 nothing is said about a body of unknown size; only a request whose end is here has none.
  '  http-request return status 411 content-type text/plain string "The size of the body must be stated." if body_limit !{ req.hdr(content-length) -m found } !{ internal.htx.has_eom }',
  `  http-request set-var(txn.limit) ${field('body_limit')},add(0) if body_limit`,
  // What is stated is also what comes, since anything else is refused. What has come is not all that will: of a
  // body over HTTP/2 that arrived at once, only its first buffer is counted.
  '  http-request return status 413 default-errorfiles if body_limit { req.hdr_val(content-length),sub(txn.limit) gt 0 }',
  '  http-request return status 413 default-errorfiles if body_limit { req.body_size,sub(txn.limit) gt 0 }',
  // Behind everything that could refuse the request: who may not ask wakes nobody.
  '  http-request lua.wake if asleep { nbsrv eq 0 }',
  '  http-request return status 503 default-errorfiles if { nbsrv eq 0 }',
]

/**
 * What changes on the way to the app and back. A path whose beginning is written in another way than the
 * route's cannot be shortened, nor one that goes on without a slash: the app would get another path than the
 * one that was asked for.
 */
const TO_THE_APP = [
  `  http-request set-header X-Portreeve-Edge %[${field('proof')}] if proof`,
  `  http-request set-timeout server ${field('timeout')},add(0) if timeout`,
  `  http-request set-var(txn.strip) ${field('strip')} if strip`,
  '  http-request set-var(txn.length) var(txn.strip),length if strip',
  '  http-request return status 400 default-errorfiles if strip !{ path,bytes(0,txn.length),strcmp(txn.strip) eq 0 }',
  '  http-request return status 400 default-errorfiles if strip { path,bytes(txn.length),length gt 0 } !{ path,bytes(txn.length) -m beg / }',
  '  http-request set-header X-Forwarded-Prefix %[var(txn.strip)] if strip',
  '  http-request set-path %[path,bytes(txn.length)] if strip',
  '  http-request set-path /%[path] if strip !{ path_beg / }',
  '  http-response lua.set_headers if headers',
]
