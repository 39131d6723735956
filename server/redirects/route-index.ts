import type { Route } from '#server/platform/ingress/ingress'
import { matchRedirect, type RedirectMatch } from '#server/platform/ingress/render/redirects'
import { type Pattern, readPattern, stepsOf } from './pattern.ts'

/** The answers of the edge to addresses, found without a look at every route and rule. */
export interface RouteIndex {
  routes: readonly Route[]
  /**
   * The route that the edge picks for an address: the name itself before a wildcard, then the longest path.
   */
  routeFor(url: URL): Route | undefined
  /** The first rule of a route that matches. */
  match(route: Route, path: string, query: string): RedirectMatch | undefined
  /** Counts work that was done for the same question beside the index. */
  spend(steps: number): void
  /** Whether the question has cost all that it may; patterns match nothing from then on. */
  readonly is_exhausted: boolean
}
/** Finding a route and following one answer, in steps: a step is a character that a pattern looks at. */
const STEPS_OF_HOP = 700
/** Reading a pattern and judging its cost, for each of its characters. */
export const STEPS_TO_READ = 50
/** Eight characters of a prefix are looked up in the time of a step. */
const PREFIX_CHARACTERS = 8
interface Compiled {
  at: number
  from: string
  pattern: RegExp
  read?: Pattern
  /** Worst costs, by the length of the path as a power of two. */
  steps: number[]
}
/** Places of rules in their order; of several from one place only the first can ever answer. */
interface Places {
  exact: Map<string, number>
  prefix: Map<string, number>
  /** Lengths of the prefixes. */
  lengths: number[]
  patterns: Compiled[]
}

export const covers = (route: Route, path: string): boolean =>
  route.path === undefined || path === route.path || path.startsWith(`${route.path}/`)
export const namesOf = (route: Route): string[] => [...route.hostnames, ...Object.keys(route.aliases ?? {})]

function placesOf({ redirects = [] }: Route): Places {
  const places: Places = { exact: new Map(), prefix: new Map(), lengths: [], patterns: [] }
  redirects.forEach(({ kind, from }, at) => {
    if (kind === 'regex')
      places.patterns.push({ at, from, pattern: new RegExp(`^(?:${from})$`, 's'), steps: [] })
    else if (!places[kind].has(from)) places[kind].set(from, at)
  })
  places.lengths = [...new Set([...places.prefix.keys()].map(({ length }) => length))]
  return places
}

/** The first prefix rule whose place a path lies at or below; Infinity when there is none. */
function firstPrefix({ prefix, lengths }: Places, path: string): number {
  let first = Infinity
  for (const length of lengths) {
    // A prefix ends where a segment ends.
    if (length > path.length) continue
    if (length < path.length && path[length] !== '/' && path[length - 1] !== '/') continue
    first = Math.min(first, prefix.get(path.slice(0, length)) ?? Infinity)
  }
  return first
}

/** @param most_steps What a question may cost altogether. */
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
  const spend = (count: number): void => {
    steps += count
  }
  const costOf = (compiled: Compiled, length: number): number => {
    const bits = Math.ceil(Math.log2(length + 1))
    const known = compiled.steps[bits]
    if (known !== undefined) return known
    spend(compiled.from.length * STEPS_TO_READ)
    compiled.read ??= readPattern(compiled.from)
    return (compiled.steps[bits] = stepsOf(compiled.read, 2 ** bits))
  }
  return {
    routes,
    spend,
    get is_exhausted() {
      return steps > most_steps
    },
    routeFor({ hostname, pathname }) {
      const named = by_name.get(hostname) ?? by_name.get(hostname.replace(/^[^.]*/, '*'))
      return named?.find((route) => covers(route, pathname))
    },
    match(route, path, query) {
      const known = placesFor(route)
      spend(STEPS_OF_HOP + (known.lengths.length * path.length) / PREFIX_CHARACTERS)
      const plain = Math.min(known.exact.get(path) ?? Infinity, firstPrefix(known, path))
      const first = known.patterns.find((compiled) => {
        if (compiled.at > plain || steps > most_steps) return false
        spend(costOf(compiled, path.length))
        return compiled.pattern.test(path)
      })
      if (first) spend(first.from.length)
      const rule = route.redirects?.[Math.min(plain, first?.at ?? Infinity)]
      return rule && matchRedirect([rule], path, query)
    },
  }
}
