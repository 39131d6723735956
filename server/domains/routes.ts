import { own } from '#server/kernel/own'
import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { servedNames } from './ownership.ts'
import type { DomainRow } from './repository.ts'
import { type BasicAuthDigest, hstsText, jsonOf } from './view.ts'

/** What else the routes of an app need to know. */
export interface RouteParts {
  /** Addresses of the instances; none: the app does not run. */
  addresses: readonly string[]
  /** Port on which the app serves. */
  port: number
  /** Instances of each public service of a compose app. */
  services?: Readonly<Record<string, { addresses: readonly string[]; port: number }>>
  /** Enabled rules of a domain, in the order in which they are tried. */
  redirects(domain_id: string): RouteRedirect[]
  /** Whether the edge has a certificate for a name, so that HTTPS can be insisted on. */
  isSecured(hostname: string): boolean
}

/** Insisting on HTTPS before there is a certificate would show every visitor a warning. */
const insists = (row: DomainRow, served: string, isSecured: RouteParts['isSecured']) =>
  row.force_https === 1 && row.ssl_mode !== 'off' && (row.ssl_mode === 'external' || isSecured(served))

function routeOf(row: DomainRow, parts: RouteParts): Route {
  const { redirects, isSecured } = parts
  // A service that the app does not have any more is one that nobody serves.
  const { addresses, port } =
    row.service === null ? parts : (own(parts.services, row.service) ?? { addresses: [], port: parts.port })
  const { served, alias } = servedNames(row)
  const rules = redirects(row.id)
  const allowed = jsonOf<string[]>(row.ip_allow)
  const pages = jsonOf<Record<string, string>>(row.error_pages)
  const headers = {
    ...jsonOf<Record<string, string>>(row.headers),
    ...(row.hsts ? { 'Strict-Transport-Security': hstsText(row.hsts) } : {}),
  }
  const auth = row.basic_auth ? jsonOf<BasicAuthDigest>(row.basic_auth) : undefined
  return {
    id: row.id,
    app_id: row.app_id,
    hostnames: [served],
    ...(row.path === '/' ? {} : { path: row.path, ...(row.strip_path ? { strip_path: true } : {}) }),
    ...(alias ? { aliases: { [alias]: served } } : {}),
    ...(rules.length > 0 ? { redirects: rules } : {}),
    servers: addresses.map((address) => ({ address, port: row.port ?? port })),
    ...(insists(row, served, isSecured) ? { force_https: true } : {}),
    ...(row.maintenance ? { maintenance: true } : {}),
    ...(allowed.length > 0 ? { allowed_addresses: allowed } : {}),
    ...(auth ? { basic_auth: { salt: auth.salt, digest: auth.digest } } : {}),
    ...(Object.keys(headers).length > 0 ? { response_headers: headers } : {}),
    ...(Object.keys(pages).length > 0 ? { error_pages: pages } : {}),
    ...(row.body_limit_bytes === null ? {} : { body_limit_bytes: row.body_limit_bytes }),
    ...(row.request_timeout_seconds === null
      ? {}
      : { request_timeout_ms: row.request_timeout_seconds * 1000 }),
  }
}

/** The routes of domains as they would be once proven. Pure. */
export const plannedRoutes = (domains: readonly DomainRow[], parts: RouteParts): Route[] =>
  domains.filter(({ status }) => status !== 'failed').map((row) => routeOf(row, parts))

/**
 * The routes of an app: one for each of its domains, all to the same instances; a domain may name another
 * port of them. A domain that nobody has proven to own is no route. Pure.
 */
export const routesOf = (domains: readonly DomainRow[], parts: RouteParts): Route[] =>
  domains
    .filter(({ status }) => status === 'active' || status === 'verified')
    .map((row) => routeOf(row, parts))
