import { networkKeys } from '../networks.ts'
import type { Route } from '../ingress.ts'
import { pageEntries, PAGES_MAP } from './error-pages.ts'
import { partsOf, renderRules, ruleFlag } from './rules.ts'
import { partEntries } from './map-encoding.ts'

/** Names that lead to one route for every path, as its word, or to `BY_PATH`. */
export const HOSTS_MAP = 'maps/hosts.map'
export const WILDCARDS_MAP = 'maps/wildcards.map'
/** Names and paths of the names that several routes share. */
export const PATHS_MAP = 'maps/paths.map'
/** The rules of a route, by its backend; a route without rules has no entry, and its word says so. */
export const RULES_MAP = 'maps/rules.map'
export const ALIASES_MAP = 'maps/aliases.map'
export const ALLOWED_MAP = 'maps/allowed.map'
/** Redirects and headers of routes, as many together as fit into one command. */
export const PARTS_MAP = 'maps/parts.map'
export const CHALLENGES_MAP = 'maps/challenges.map'
/**
 * In the order in which entries come into being, so that a name leads to a route only when all its rules are
 * there. They go in the opposite order.
 */
export const ROUTE_MAPS = [
  PARTS_MAP,
  PAGES_MAP,
  ALLOWED_MAP,
  ALIASES_MAP,
  RULES_MAP,
  PATHS_MAP,
  WILDCARDS_MAP,
  HOSTS_MAP,
] as const

/** Stands in place of a backend for a name whose paths lead to several routes; no backend begins like it. */
export const BY_PATH = 'paths'

/** The name of a backend: a number, because a backend outlives the route that it serves. */
export const backendName = (number: number): string => `b${String(number).padStart(5, '0')}`

/** An entry of a map that the edge looks things up in. */
export interface MapEntry {
  path: string
  key: string
  value: string
}

/** What is looked up by a route's backend. */
export function ruleEntries(route: Route, number: number): MapEntry[] {
  const backend = backendName(number)
  const parts = partsOf(route)
  const rules = renderRules(route, parts)
  const entries: MapEntry[] = rules === undefined ? [] : [{ path: RULES_MAP, key: backend, value: rules }]
  for (const [alias, target] of Object.entries(route.aliases ?? {}))
    entries.push({ path: ALIASES_MAP, key: `${backend}/${alias}`, value: target })
  for (const network of route.allowed_addresses ?? [])
    for (const key of networkKeys(network))
      entries.push({ path: ALLOWED_MAP, key: `${backend}/${key}`, value: 'yes' })
  for (const list of [parts.redirects, parts.headers])
    for (const entry of partEntries(backend, list)) entries.push({ path: PARTS_MAP, ...entry })
  return [...entries, ...pageEntries(route, backend)]
}

/**
 * What a name leads to, found by one look-up for each request: the backend, the app for the line of the log,
 * and whether there are rules to look up. The line keeps it, because a backend may serve another app when a
 * long request ends.
 */
export const routeWord = (route: Route | undefined, number: number): string =>
  `${backendName(number)}|${route?.app_id ?? ''}${route ? ruleFlag(route) : ''}`

/** What is looked up by a host name. @param places The words of the routes by the paths that they serve. */
export function hostEntries(hostname: string, places: ReadonlyMap<string, string>): MapEntry[] {
  const [path, key] = hostname.startsWith('*.') ? [WILDCARDS_MAP, hostname.slice(2)] : [HOSTS_MAP, hostname]
  const whole = places.get('/')
  if (places.size === 0) return []
  if (places.size === 1 && whole !== undefined) return [{ path, key, value: whole }]
  return [
    { path, key, value: BY_PATH },
    ...[...places].map(([place, value]) => ({
      path: PATHS_MAP,
      key: `${hostname}${place === '/' ? '' : place}/`,
      value,
    })),
  ]
}
