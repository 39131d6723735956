import type { Route } from '#server/platform/ingress/ingress'
import { matchRedirect, type RedirectMatch } from '#server/platform/ingress/render/redirects'
import { type Pattern, readPattern, stepsOf, unanchored } from './pattern.ts'

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
/**
 * Finding a route and following one answer, in steps: a step is a character that a pattern looks at, 10 ns in a server
 * that idles, whose code is not compiled for speed.
 */
const STEPS_OF_HOP = 1500
/** Asking a pattern at all, and noting a rule. */
const STEPS_OF_TEST = 40
const STEPS_OF_RULE = 50
/** Reading a pattern and judging its cost, for each of its characters; compiling it takes less. */
export const STEPS_TO_READ = 150
const STEPS_TO_COMPILE = 50
/** Eight characters of a prefix are looked up in the time of a step. */
const PREFIX_CHARACTERS = 8
interface Compiled {
  at: number
  from: string
  /** Made when it is asked first. */
  pattern?: RegExp
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
  /** By the fixed text that they begin with, so that few of a thousand have to be asked. */
  patterns: Map<string, Compiled[]>
  beginnings: number[]
}

export const covers = (route: Route, path: string): boolean =>
  route.path === undefined || path === route.path || path.startsWith(`${route.path}/`)
export const namesOf = (route: Route): string[] => [...route.hostnames, ...Object.keys(route.aliases ?? {})]

/** The text that whatever a pattern matches begins with. */
function beginningOf(from: string): string {
  const text = unanchored(from)
  if (text.includes('|')) return ''
  const [plain = ''] = /^[^\\.*+?()[\]{}^$]*/.exec(text)!
  // What is repeated need not be there.
  return /^[*?{]/.test(text.slice(plain.length)) ? plain.slice(0, -1) : plain
}

function placesOf({ redirects = [] }: Route): Places {
  const places: Places = {
    exact: new Map(),
    prefix: new Map(),
    lengths: [],
    patterns: new Map(),
    beginnings: [],
  }
  redirects.forEach(({ kind, from }, at) => {
    if (kind === 'regex') {
      const beginning = beginningOf(from)
      const others = places.patterns.get(beginning)
      const compiled: Compiled = { at, from, steps: [] }
      if (others) others.push(compiled)
      else places.patterns.set(beginning, [compiled])
    } else if (!places[kind].has(from)) places[kind].set(from, at)
  })
  places.lengths = lengthsOf(places.prefix)
  places.beginnings = lengthsOf(places.patterns)
  return places
}

const lengthsOf = (texts: ReadonlyMap<string, unknown>): number[] => [
  ...new Set([...texts.keys()].map(({ length }) => length)),
]

/** Patterns that a path may match, in their order. */
function patternsFor({ patterns, beginnings }: Places, path: string): readonly Compiled[] {
  const lists = beginnings.flatMap((length) => {
    const list = patterns.get(path.slice(0, length))
    return list ? [list] : []
  })
  return lists.length > 1 ? lists.flat().sort((a, b) => a.at - b.at) : (lists[0] ?? [])
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
  const spend = (count: number): void => {
    steps += count
  }
  const placesFor = (route: Route): Places => {
    const known = places.get(route)
    if (known) return known
    spend((route.redirects?.length ?? 0) * STEPS_OF_RULE)
    const made = placesOf(route)
    places.set(route, made)
    return made
  }
  const costOf = (compiled: Compiled, length: number): number => {
    const bits = Math.ceil(Math.log2(length + 1))
    const known = compiled.steps[bits]
    if (known !== undefined) return known
    spend(compiled.from.length * (STEPS_TO_READ + STEPS_TO_COMPILE))
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
      spend(
        STEPS_OF_HOP + ((known.lengths.length + known.beginnings.length) * path.length) / PREFIX_CHARACTERS,
      )
      const plain = Math.min(known.exact.get(path) ?? Infinity, firstPrefix(known, path))
      const first = patternsFor(known, path).find((compiled) => {
        if (compiled.at > plain || steps > most_steps) return false
        spend(STEPS_OF_TEST + costOf(compiled, path.length))
        compiled.pattern ??= new RegExp(`^(?:${compiled.from})$`, 's')
        return compiled.pattern.test(path)
      })
      if (first) spend(first.from.length)
      const rule = route.redirects?.[Math.min(plain, first?.at ?? Infinity)]
      return rule && matchRedirect([rule], path, query)
    },
  }
}
