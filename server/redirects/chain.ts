import { own } from '#server/kernel/own'
import type { Route } from '#server/platform/ingress/ingress'
import { readPattern, samplesOf } from './pattern.ts'
import { covers, createRouteIndex, namesOf, type RouteIndex, STEPS_TO_READ } from './route-index.ts'

/** One answer of the edge that sends a client elsewhere. */
export interface Hop {
  url: string
  status: number
  by: 'https' | 'www' | 'rule' /** The rule, when it was one. */
  redirect_id: string | null
  location: string
}
/** How a chain ends: at the app, outside of the project's names, or never. */
export interface Chain {
  hops: Hop[]
  ends: 'app' | 'elsewhere' | 'loop'
}

/** Browsers give up after about twenty; nobody means more than these. */
const MAX_HOPS = 10

/**
 * What it may cost to follow a chain or to look for loops, in characters that patterns look at; the twentieth of a
 * second: nobody else is served meanwhile.
 */
export const MOST_STEPS = 4_000_000

/** Another route of the same name that gets all requests at and below a path before this one does. */
export function routeBefore(routes: readonly Route[], id: string, path: string): Route | undefined {
  const own = routes.find((route) => route.id === id)
  return (
    own &&
    routes.find(
      (route) =>
        route.id !== id &&
        (route.path ?? '').length > (own.path ?? '').length &&
        covers(route, path) &&
        namesOf(route).some((name) => namesOf(own).includes(name)),
    )
  )
}

/** What the edge answers first: HTTPS is insisted on, then the name, then the rules. */
function hopOf(index: RouteIndex, route: Route, url: URL): { hop: Hop; to: URL } | undefined {
  const hop = (by: Hop['by'], status: number, to: URL, redirect_id: string | null = null) => ({
    hop: { url: url.href, status, by, redirect_id, location: to.href },
    to,
  })
  const alias = own(route.aliases, url.hostname)
  if (route.force_https && url.protocol === 'http:')
    return hop('https', 308, new URL(`https://${alias ?? url.hostname}${url.pathname}${url.search}`))
  if (alias !== undefined)
    return hop('www', 308, new URL(`${url.protocol}//${alias}${url.pathname}${url.search}`))
  const match = index.match(route, url.pathname, url.search.slice(1))
  const to = match && URL.parse(match.location, url.href)
  return to ? hop('rule', match.redirect.status, to, match.redirect.id) : undefined
}

/** Follows what the edge answers, over all these routes. */
export function follow(index: RouteIndex, from: URL): Chain {
  const hops: Hop[] = []
  const seen = new Set<string>()
  for (let url = from; hops.length <= MAX_HOPS; ) {
    // The fragment never reaches a server, and rules do not see the query.
    const key = `${url.protocol}//${url.hostname}${url.pathname}`
    if (seen.has(key)) return { hops, ends: 'loop' }
    seen.add(key)
    const route = index.routeFor(url)
    if (!route) return { hops, ends: 'elsewhere' }
    const answer = hopOf(index, route, url)
    if (!answer) return { hops, ends: 'app' }
    hops.push(answer.hop)
    url = answer.to
  }
  return { hops, ends: 'loop' }
}

function pathsOf(kind: string, from: string): string[] {
  if (kind === 'exact') return [from]
  return kind === 'prefix' ? [from, `${from.replace(/\/$/, '')}/x`] : samplesOf(readPattern(from))
}

/**
 * Addresses that a rule is meant for. Over HTTPS alone: over plain HTTP the same names and paths follow each
 * other, with a step to HTTPS between them at most.
 */
function addressesOf(route: Route, kind: string, from: string): URL[] {
  const host = route.hostnames[0]!.replace(/^\*/, 'x')
  return pathsOf(kind, from).flatMap((path) =>
    path.startsWith('/') ? (URL.parse(`https://${host}${path}`) ?? []) : [],
  )
}

/**
 * The first chain that never ends among the addresses that rules are meant for; each loop over rules passes
 * through one of these. What costs more than `MOST_STEPS` is not looked at.
 * @param changed id of a rule, or of the route, that is new or another than it was: looked at before all others.
 */
export function findLoop(routes: readonly Route[], changed?: string): Chain | undefined {
  const index = createRouteIndex(routes, MOST_STEPS)
  const is_changed = ({ id }: { id: string }) => id === changed
  const owner = routes.find(({ redirects = [] }) => redirects.some(is_changed)) ?? routes.find(is_changed)
  const first = owner?.redirects?.find(is_changed)
  const begin = owner ? [{ ...owner, redirects: first ? [first] : (owner.redirects ?? []) }] : []
  for (const route of [...begin, ...routes]) {
    for (const rule of route.redirects ?? []) {
      if (index.is_exhausted) return undefined
      if (rule.kind === 'regex') index.spend(rule.from.length * STEPS_TO_READ)
      for (const url of addressesOf(route, rule.kind, rule.from)) {
        const chain = follow(index, url)
        if (index.is_exhausted) return undefined
        if (chain.ends === 'loop') return chain
      }
    }
  }
  return undefined
}
