import type { MasterCli } from '../runtime/master-cli.ts'
import type { Route, RouteTraffic } from '../ingress.ts'
import { backendName } from '../render/maps.ts'
import { parseStatistics } from './statistics.ts'

type Counters = Pick<RouteTraffic, 'requests' | 'errors_5xx' | 'bytes_in' | 'bytes_out'>
const COLUMNS = {
  requests: 'req_tot',
  errors_5xx: 'hrsp_5xx',
  bytes_in: 'bin',
  bytes_out: 'bout',
} as const
const NAMES = Object.keys(COLUMNS) as (keyof Counters)[]

/**
 * Adds up what the edge counts per route. A new worker begins at zero and a backend may change its route; the
 * totals only ever grow.
 */
export interface TrafficCounter {
  collect(routes: ReadonlyMap<number, Route>): Promise<RouteTraffic[]>
}

export function createTrafficCounter(cli: MasterCli): TrafficCounter {
  const seen = new Map<string, Counters>()
  const totals = new Map<string, Counters>()

  return {
    async collect(routes) {
      const rows = new Map(
        parseStatistics(await cli.run(['show stat -1 2 -1'])).map((row) => [row.pxname ?? '', row]),
      )
      const result: RouteTraffic[] = []
      for (const [number, route] of routes) {
        const backend = backendName(number)
        const row = rows.get(backend)
        const now = Object.fromEntries(
          NAMES.map((name) => [name, Number(row?.[COLUMNS[name]] ?? 0)]),
        ) as unknown as Counters
        const before = seen.get(backend)
        const restarted = before !== undefined && now.requests < before.requests
        const total = totals.get(route.id) ?? {
          requests: 0,
          errors_5xx: 0,
          bytes_in: 0,
          bytes_out: 0,
        }
        for (const name of NAMES) total[name] += restarted || !before ? now[name] : now[name] - before[name]
        totals.set(route.id, total)
        seen.set(backend, now)
        result.push({ route_id: route.id, ...total, sessions: Number(row?.scur ?? 0) })
      }
      const present = new Set(result.map(({ route_id }) => route_id))
      for (const route_id of totals.keys()) if (!present.has(route_id)) totals.delete(route_id)
      return result
    },
  }
}
