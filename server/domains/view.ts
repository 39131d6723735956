import { invalid } from '#server/kernel/errors'
import { createBasicAuth } from '#server/platform/ingress/render/rules'
import { readableHostname, wwwCounterpart } from './hostname.ts'
import type { DomainColumns, DomainRow } from './repository.ts'
import type { Domain, DomainChange, DomainRules } from './schema.ts'
import { type Expected, type Finding, recordsOf } from './verification.ts'

/** What is kept of a name and a password: the password cannot be read from it. */
export interface BasicAuthDigest {
  username: string
  salt: string
  digest: string
}
type HstsRule = NonNullable<Domain['hsts']>

export const jsonOf = <T>(text: string): T => JSON.parse(text) as T
export const findingOf = (row: DomainRow): Finding | undefined =>
  row.finding ? jsonOf<Finding>(row.finding) : undefined

/** The header that browsers read. */
export function hstsText(hsts: string): string {
  const { max_age, include_subdomains, preload } = jsonOf<HstsRule>(hsts)
  return `max-age=${max_age}${include_subdomains ? '; includeSubDomains' : ''}${preload ? '; preload' : ''}`
}

const flag = (value: boolean | undefined) => (value === undefined ? undefined : Number(value))
/** As a column keeps it: null empties it, undefined leaves what is set. */
const json = (value: unknown) => (value === null ? null : (JSON.stringify(value) as string | undefined))
/** The name beside a domain that `www` asks for; undefined leaves what is set. */
function counterpartOf(hostname: string, www: DomainRules['www']) {
  if (www === undefined) return undefined
  return www === 'keep' ? null : wwwCounterpart(hostname)
}

/**
 * A change that names the user without a password leaves what is set: the answer of a GET can be sent back.
 */
export function rulesOfChange({ basic_auth, ...rules }: DomainChange, row: DomainRow): DomainRules {
  if (!basic_auth) return { ...rules, basic_auth }
  const { username, password } = basic_auth
  if (password !== undefined) return { ...rules, basic_auth: { username, password } }
  if (!row.basic_auth || jsonOf<BasicAuthDigest>(row.basic_auth).username !== username)
    throw invalid('basic_auth.password', 'is needed with a user name that is not set yet.')
  return rules
}

/** The columns that a change of the rules touches; what is not given stays. */
export function columnsOf(hostname: string, change: DomainRules): DomainColumns {
  const { basic_auth, www } = change
  return {
    path: change.path,
    port: change.port,
    service: change.service,
    www,
    body_limit_bytes: change.body_limit_bytes,
    request_timeout_seconds: change.request_timeout_seconds,
    strip_path: flag(change.strip_path),
    force_https: flag(change.force_https),
    maintenance: flag(change.maintenance),
    headers: json(change.headers) ?? undefined,
    ip_allow: json(change.ip_allow) ?? undefined,
    error_pages: json(change.error_pages) ?? undefined,
    hsts: json(change.hsts),
    basic_auth: basic_auth
      ? JSON.stringify({
          username: basic_auth.username,
          ...createBasicAuth(basic_auth.username, basic_auth.password),
        })
      : basic_auth,
    counterpart: counterpartOf(hostname, www),
  }
}

/** Addresses of names on the ports of the edge, which are left out where they are the usual ones. */
export const urlsOn =
  ({ http_port, https_port }: { http_port: number; https_port: number }) =>
  (hostname: string, secure: boolean): string =>
    secure
      ? `https://${hostname}${https_port === 443 ? '' : `:${https_port}`}`
      : `http://${hostname}${http_port === 80 ? '' : `:${http_port}`}`

/** Without the fields that are not given, which would empty what is set. */
export const withoutUndefined = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }

/** What surrounds a domain in an answer. */
export interface DomainSurroundings {
  expected(): Expected
  urlOf(hostname: string, secure: boolean): string
  isSecured(hostname: string): boolean
}

export function viewOf(row: DomainRow, { expected, urlOf, isSecured }: DomainSurroundings): Domain {
  const finding = findingOf(row)
  const is_automatic = row.kind === 'automatic'
  // Where TLS ends in front, clients see the proxy's ports, which are the usual ones.
  const origin =
    row.ssl_mode === 'external'
      ? `https://${row.hostname}`
      : urlOf(row.hostname, row.ssl_mode !== 'off' && isSecured(row.hostname))
  return {
    id: row.id,
    app_id: row.app_id,
    project_id: row.project_id,
    hostname: row.hostname,
    hostname_unicode: readableHostname(row.hostname),
    kind: row.kind,
    status: row.status,
    path: row.path,
    strip_path: row.strip_path === 1,
    port: row.port,
    service: row.service,
    ssl_mode: row.ssl_mode,
    force_https: row.force_https === 1,
    www: row.www,
    maintenance: row.maintenance === 1,
    headers: jsonOf(row.headers),
    hsts: row.hsts ? jsonOf<HstsRule>(row.hsts) : null,
    basic_auth: row.basic_auth ? { username: jsonOf<BasicAuthDigest>(row.basic_auth).username } : null,
    ip_allow: jsonOf(row.ip_allow),
    body_limit_bytes: row.body_limit_bytes,
    request_timeout_seconds: row.request_timeout_seconds,
    error_pages: jsonOf(row.error_pages),
    dns_records: is_automatic ? [] : recordsOf(row, expected(), finding),
    verification: {
      proven_by: finding?.proven_by ?? null,
      points_here: finding?.points_here ?? null,
      proxied_by: finding?.proxied_by ?? null,
      message:
        finding?.message ??
        (is_automatic ? 'The name belongs to the installation.' : 'The name has not been looked up yet.'),
      checked_at: row.checked_at,
      next_check_at: row.next_check_at,
      verified_at: row.verified_at,
    },
    url: `${origin}${row.path === '/' ? '' : row.path}`,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/** What the audit trail keeps: rules in full, of a password only whose it is. */
export const auditedOf = (row: DomainRow): Record<string, unknown> => ({
  hostname: row.hostname,
  path: row.path,
  port: row.port,
  service: row.service,
  strip_path: row.strip_path === 1,
  status: row.status,
  ssl_mode: row.ssl_mode,
  force_https: row.force_https === 1,
  www: row.www,
  maintenance: row.maintenance === 1,
  headers: jsonOf(row.headers),
  hsts: row.hsts && jsonOf(row.hsts),
  ip_allow: jsonOf(row.ip_allow),
  body_limit_bytes: row.body_limit_bytes,
  request_timeout_seconds: row.request_timeout_seconds,
  basic_auth: row.basic_auth && jsonOf<BasicAuthDigest>(row.basic_auth).username,
  error_pages: Object.keys(jsonOf<object>(row.error_pages)),
})
