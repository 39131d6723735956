import type { Route } from '#server/platform/ingress/ingress'
import { matchRedirect, type RedirectMatch } from '#server/platform/ingress/render/redirects'

/** The answers of the edge to addresses, found without a look at every route and rule. */
export interface RouteIndex {
  routes: readonly Route[]
  /**
   * The route that the edge picks for an address: the name itself before a wildcard, then the longest path.
   */
  routeFor(url: URL): Route | undefined
  /** The first rule of a route that matches. */
  match(route: Route, path: string, query: string): RedirectMatch | undefined
  /** Whether patterns have cost all that they may; they match nothing from then on. */
  readonly is_exhausted: boolean
}
/** Places of rules in their order; of several from one place only the first can ever answer. */
interface Places {
  exact: Map<string, number>
  prefix: Map<string, number>
  patterns: { at: number; pattern: RegExp }[]
}

export const covers = (route: Route, path: string): boolean =>
  route.path === undefined || path === route.path || path.startsWith(`${route.path}/`)
export const namesOf = (route: Route): string[] => [...route.hostnames, ...Object.keys(route.aliases ?? {})]

/**
 * Every prefix that a path can lie at or below: of `/a/b` these are `/a/b`, `/a/`, `/a`, `/` and the empty
 * one.
 */
const prefixesOf = (path: string): string[] => [
  path,
  ...[...path.matchAll(/\//g)].flatMap(({ index }) => [path.slice(0, index), path.slice(0, index + 1)]),
]

function placesOf({ redirects = [] }: Route): Places {
  const places: Places = { exact: new Map(), prefix: new Map(), patterns: [] }
  redirects.forEach(({ kind, from }, at) => {
    if (kind === 'regex') places.patterns.push({ at, pattern: new RegExp(`^(?:${from})$`, 's') })
    else if (!places[kind].has(from)) places[kind].set(from, at)
  })
  return places
}

/**
 * @param most_steps What patterns may cost altogether: a pattern over a path costs the square of the length
 * at worst.
 */
export function createRouteIndex(routes: readonly Route[], most_steps = Infinity): RouteIndex {
  const by_name = new Map<string, Route[]>()
  for (const route of routes)
    for (const name of namesOf(route)) by_name.set(name, [...(by_name.get(name) ?? []), route])
  for (const named of by_name.values()) named.sort((a, b) => (b.path ?? '').length - (a.path ?? '').length)
  const places = new Map<Route, Places>()
  let steps = 0
  const placesFor = (route: Route): Places => {
    const known = places.get(route) ?? placesOf(route)
    places.set(route, known)
    return known
  }
  return {
    routes,
    get is_exhausted() {
      return steps > most_steps
    },
    routeFor({ hostname, pathname }) {
      const named = by_name.get(hostname) ?? by_name.get(hostname.replace(/^[^.]*/, '*'))
      return named?.find((route) => covers(route, pathname))
    },
    match(route, path, query) {
      const { exact, prefix, patterns } = placesFor(route)
      const plain = Math.min(
        exact.get(path) ?? Infinity,
        ...prefixesOf(path).map((one) => prefix.get(one) ?? Infinity),
      )
      const first = patterns.find(({ at, pattern }) => {
        if (at > plain || steps > most_steps) return false
        steps += path.length ** 2
        return pattern.test(path)
      })
      const rule = route.redirects?.[Math.min(plain, first?.at ?? Infinity)]
      return rule && matchRedirect([rule], path, query)
    },
  }
}
