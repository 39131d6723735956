import { expect, it } from 'vitest'
import type { Route } from '#server/platform/ingress/ingress'
import { ruleEntries } from '#server/platform/ingress/render/maps'

it('the rules of a route are written in no time, as many and as long as the edge takes', () => {
  const route: Route = {
    id: 'dom_1',
    hostnames: ['a.test'],
    servers: [],
    redirects: Array.from({ length: 1000 }, (_, at) => ({
      id: `rdr_${at}`,
      kind: 'exact',
      from: `/${at}`.padEnd(1000, '{'),
      to: '/'.padEnd(1000, '}'),
      status: 301,
      keep_query: true,
    })),
    response_headers: Object.fromEntries(
      Array.from({ length: 50 }, (_, at) => [`X-${at}`, '~'.repeat(4096)]),
    ),
    error_pages: Object.fromEntries(
      [403, 404, 502, 503, 504].map((status) => [
        status,
        Array.from({ length: 2_400 }, (_, at) => `é${status + at}`).join(''),
      ]),
    ),
  }
  const started = process.cpuUsage()
  const entries = ruleEntries(route, 1)
  expect(process.cpuUsage(started).user).toBeLessThan(700_000)
  expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length)
})
