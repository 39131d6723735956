import type { Route } from '../ingress.ts'
import { hostPathsOf } from './host-paths.ts'
import { SHARD_SIZE } from './render.ts'

/** Which backend serves which route. Every look-up is one step, however many routes there are. */
export interface RouteTable {
  readonly routes: ReadonlyMap<number, Route>
  pool_size: number
  numberOf(route_id: string): number | undefined
  /** The id of the route that has this name at this path. */
  ownerOf(hostname: string, path: string): string | undefined
  /** The backends that serve a name, by path. */
  backendsOf(hostname: string): ReadonlyMap<string, number>
  /** Sets what a backend serves; nothing frees it. */
  put(number: number, route: Route | undefined): void
  /**
   * A backend that serves nothing, the one that has been free for longest first: the last requests of its
   * former route are then gone.
   */
  takeFree(): number | undefined
  free(): number
}

/** Free backends that there should always be, so that a new app need not wait until room is made. */
export const MIN_FREE_BACKENDS = 16

/**
 * How many backends to have when so many are needed: whole shards, with an eighth to spare, since each step
 * is a reload.
 */
export function poolSizeFor(needed: number, current: number): number {
  if (needed + MIN_FREE_BACKENDS <= current) return current
  return Math.ceil((needed + Math.max(SHARD_SIZE, needed / 8)) / SHARD_SIZE) * SHARD_SIZE
}

export function createRouteTable(initial: ReadonlyMap<number, Route>, pool_size: number): RouteTable {
  const routes = new Map<number, Route>()
  const numbers = new Map<string, number>()
  const hosts = new Map<string, Map<string, number>>()
  const free = new Set<number>()
  let size = 0

  const table: RouteTable = {
    routes,
    get pool_size() {
      return size
    },
    set pool_size(desired) {
      for (let number = size + 1; number <= desired; number++) free.add(number)
      for (let number = desired + 1; number <= size; number++) free.delete(number)
      size = desired
    },
    numberOf: (route_id) => numbers.get(route_id),
    ownerOf: (hostname, path) => routes.get(hosts.get(hostname)?.get(path) ?? 0)?.id,
    backendsOf: (hostname) => hosts.get(hostname) ?? new Map(),
    put(number, route) {
      const known = routes.get(number)
      if (known) {
        numbers.delete(known.id)
        for (const [hostname, path] of hostPathsOf(known)) {
          const places = hosts.get(hostname)
          if (places?.get(path) === number) places.delete(path)
          if (places?.size === 0) hosts.delete(hostname)
        }
      }
      if (!route) {
        routes.delete(number)
        free.add(number)
        return
      }
      free.delete(number)
      routes.set(number, route)
      numbers.set(route.id, number)
      for (const [hostname, path] of hostPathsOf(route))
        hosts.set(hostname, (hosts.get(hostname) ?? new Map<string, number>()).set(path, number))
    },
    takeFree: () => free.values().next().value,
    free: () => free.size,
  }
  table.pool_size = pool_size
  for (const [number, route] of initial) table.put(number, route)
  return table
}
