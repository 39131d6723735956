import { isIP } from 'node:net'
import type { RefusedRoute, Route } from './ingress.ts'
import { IngressError } from './ingress.ts'

const ROUTE_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/
const HOSTNAME = /^(?=.{1,253}$)(\*\.)?[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/

function refuse(route: Route, message: string): never {
  throw new IngressError(`The route of ${ROUTE_ID.test(route.id) ? route.id : 'an app'} cannot be set: ${message}`)
}

/**
 * Refuses a route whose fields could mean something else in a configuration file than they say. The edge writes only what
 * passed here, so that no name or address can ever become a directive.
 */
export function checkRoute(route: Route): void {
  if (!ROUTE_ID.test(route.id)) refuse(route, 'its id has characters that the edge does not take.')
  for (const name of route.hostnames) {
    if (!HOSTNAME.test(name)) refuse(route, 'a host name is not a lower-case DNS name.')
    if (isIP(name) !== 0) refuse(route, 'a host name is an IP address.')
  }
  if (new Set(route.hostnames).size !== route.hostnames.length) refuse(route, 'a host name is listed twice.')
  for (const { address, port } of route.servers) {
    if (isIP(address) === 0 || address.includes('%')) refuse(route, 'a server is not an IP address.')
    if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse(route, 'a server has no valid port.')
  }
  if (new Set(route.servers.map((server) => `${server.address} ${server.port}`)).size !== route.servers.length) refuse(route, 'a server is listed twice.')
}

/** Refuses a route that claims a host name of another one: who serves a name must never depend on the order of changes. */
export function checkClaims(route: Route, ownerOf: (hostname: string) => string | undefined): void {
  for (const name of route.hostnames) {
    const owner = ownerOf(name)
    if (owner !== undefined && owner !== route.id) refuse(route, `${name} already belongs to ${owner}.`)
  }
}

/** Sorts routes into those that can be served together and those that cannot, each with its reason; the first to claim a name keeps it. */
export function sortRoutes(routes: Route[]): { accepted: Route[]; refused: RefusedRoute[] } {
  const owners = new Map<string, string>()
  const ids = new Set<string>()
  const accepted: Route[] = []
  const refused: RefusedRoute[] = []
  for (const route of routes) {
    try {
      checkRoute(route)
      if (ids.has(route.id)) refuse(route, 'another route has the same id.')
      checkClaims(route, (hostname) => owners.get(hostname))
      ids.add(route.id)
      for (const name of route.hostnames) owners.set(name, route.id)
      accepted.push(route)
    } catch (error) {
      if (!(error instanceof IngressError)) throw error
      refused.push({ route_id: route.id, message: error.message })
    }
  }
  return { accepted, refused }
}
