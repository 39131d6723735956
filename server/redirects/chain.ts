import type { Route } from '#server/platform/ingress/ingress'
import { matchRedirect } from '#server/platform/ingress/redirects'
import { readPattern, samplesOf } from './pattern.ts'

/** One answer of the edge that sends a client elsewhere. */
export interface Hop { url: string; status: number; by: 'https' | 'www' | 'rule'; /** The rule, when it was one. */ redirect_id: string | null; location: string }
/** How a chain ends: at the app, outside of the project's names, or never. */
export interface Chain { hops: Hop[]; ends: 'app' | 'elsewhere' | 'loop' }

/** Browsers give up after about twenty; nobody means more than these. */
const MAX_HOPS = 10

const covers = (route: Route, path: string) => route.path === undefined || path === route.path || path.startsWith(`${route.path}/`)
const names = (route: Route) => [...route.hostnames, ...Object.keys(route.aliases ?? {})]

/** The route that the edge picks for an address: the name itself before a wildcard, then the longest path. */
export function routeFor(routes: readonly Route[], { hostname, pathname }: URL): Route | undefined {
  const longest = (name: string) => routes.filter((route) => names(route).includes(name) && covers(route, pathname)).sort((a, b) => (b.path ?? '').length - (a.path ?? '').length)[0]
  const is_named = routes.some((route) => names(route).includes(hostname))
  return is_named ? longest(hostname) : longest(hostname.replace(/^[^.]*/, '*'))
}

/** Another route of the same name that gets all requests at and below a path before this one does. */
export function routeBefore(routes: readonly Route[], id: string, path: string): Route | undefined {
  const own = routes.find((route) => route.id === id)
  return own && routes.find((route) => route.id !== id && (route.path ?? '').length > (own.path ?? '').length && covers(route, path) && names(route).some((name) => names(own).includes(name)))
}

/** What the edge answers first: HTTPS is insisted on, then the name, then the rules. */
function hopOf(route: Route, url: URL): Hop | undefined {
  const hop = (by: Hop['by'], status: number, location: string, redirect_id: string | null = null): Hop => ({ url: url.href, status, by, redirect_id, location: new URL(location, url).href })
  const alias = route.aliases?.[url.hostname]
  if (route.force_https && url.protocol === 'http:') return hop('https', 308, `https://${alias ?? url.hostname}${url.pathname}${url.search}`)
  if (alias !== undefined) return hop('www', 308, `${url.protocol}//${alias}${url.pathname}${url.search}`)
  const match = matchRedirect(route.redirects ?? [], url.pathname, url.search.slice(1))
  return match && URL.canParse(match.location, url.href) ? hop('rule', match.redirect.status, match.location, match.redirect.id) : undefined
}

/** Follows what the edge answers, over all these routes. */
export function follow(routes: readonly Route[], from: URL): Chain {
  const hops: Hop[] = []
  const seen = new Set<string>()
  for (let url = from; hops.length <= MAX_HOPS; url = new URL(hops.at(-1)!.location)) {
    // The fragment never reaches a server, and rules do not see the query.
    const key = `${url.protocol}//${url.hostname}${url.pathname}`
    if (seen.has(key)) return { hops, ends: 'loop' }
    seen.add(key)
    const route = routeFor(routes, url)
    if (!route) return { hops, ends: 'elsewhere' }
    const hop = hopOf(route, url)
    if (!hop) return { hops, ends: 'app' }
    hops.push(hop)
  }
  return { hops, ends: 'loop' }
}

/** Addresses that a rule is meant for. */
function addressesOf(route: Route, kind: string, from: string): URL[] {
  const paths = kind === 'exact' ? [from] : kind === 'prefix' ? [from, `${from.replace(/\/$/, '')}/x`] : samplesOf(readPattern(from))
  const host = route.hostnames[0]!.replace(/^\*/, 'x')
  return paths.flatMap((path) => ['http', 'https'].flatMap((scheme) => (path.startsWith('/') && URL.canParse(`${scheme}://${host}${path}`) ? [new URL(`${scheme}://${host}${path}`)] : [])))
}

/** The first chain that never ends among the addresses that rules are meant for; each loop over rules passes through one of these. */
export function findLoop(routes: readonly Route[]): Chain | undefined {
  for (const route of routes) {
    for (const rule of route.redirects ?? []) {
      for (const url of addressesOf(route, rule.kind, rule.from)) {
        const chain = follow(routes, url)
        if (chain.ends === 'loop') return chain
      }
    }
  }
  return undefined
}
