/** One served route, as the build lists it: `/api/apps/:id`, `get`. */
export interface ServedRoute {
  path: string
  method: string
}

/** Which methods a path accepts. */
export interface RouteTable {
  /** Upper case, HEAD beside every GET; empty when no route has this path. */
  methods(segments: readonly string[]): string[]
}

interface Node {
  fixed: Map<string, Node>
  any?: Node
  methods: Set<string>
}
const node = (): Node => ({ fixed: new Map(), methods: new Set() })

/** Splits a path into its segments; a slash at the end means nothing. */
export const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1)

/**
 * The routes as a tree. The HTTP library cannot say which methods a path has, and a page that catches every
 * path would turn an unknown path of the API into a wrong method.
 */
export function createRouteTable(routes: readonly ServedRoute[]): RouteTable {
  const root = node()
  for (const route of routes) {
    let at = root
    for (const segment of segmentsOf(route.path)) {
      if (segment.startsWith(':')) at = at.any ??= node()
      else {
        const next = at.fixed.get(segment) ?? node()
        at.fixed.set(segment, next)
        at = next
      }
    }
    at.methods.add(route.method.toUpperCase())
    if (route.method === 'get') at.methods.add('HEAD')
  }
  return {
    methods(segments) {
      let at: Node | undefined = root
      // As the library goes: a name that is written in a route is no id of another. Where it finds no more behind the
      // name it serves the page, and where the method is another's, the endpoint without its id.
      for (const segment of segments) at = at?.fixed.get(segment) ?? at?.any
      return [...(at?.methods ?? [])].sort()
    },
  }
}
