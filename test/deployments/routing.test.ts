import { beforeEach, expect, it } from 'vitest'
import { createRouting, type Routing, type Target } from '#server/deployments/routing'
import { createLog } from '#server/kernel/log'
import { createFakeIngress, type FakeIngress } from '#server/platform/ingress/fake/fake'
import type { Route } from '#server/platform/ingress/ingress'

const OLD: Target = { addresses: ['10.0.0.1'], port: 3000 }
const NEW: Target = { addresses: ['10.0.0.2', '10.0.0.3'], port: 3000 }
let ingress: FakeIngress
let routing: Routing
/** Domains by app: id -> name, maybe with another port. */
let domains: Record<string, Record<string, { hostname: string; port?: number }>>
let current: Record<string, Target | undefined>
let routed: string[]
beforeEach(() => {
  ingress = createFakeIngress()
  domains = {
    shop: {
      dom_a: { hostname: 'shop.example.com' },
      dom_b: { hostname: 'admin.example.com', port: 8080 },
    },
  }
  current = {}
  routed = []
  routing = createRouting({
    ingress,
    log: createLog('text', 'error'),
    routes: (app_id, { addresses, port }): Route[] =>
      Object.entries(domains[app_id] ?? {}).map(([id, domain]) => ({
        id,
        app_id,
        hostnames: [domain.hostname],
        servers: addresses.map((address) => ({ address, port: domain.port ?? port })),
      })),
    others: () => [],
    certificates: () => [],
    certificatesRefused: () => undefined,
    current: async (app_id) => current[app_id],
    routed: (ids) => void routed.push(...ids),
  })
})
const servers = (id: string) =>
  ingress.routes.get(id)?.servers.map(({ address, port }) => `${address}:${port}`)

it('a switch sends every domain of the app to the new instances, each at its own port', async () => {
  await routing.serve('shop', OLD)
  await routing.serve('shop', NEW)
  expect(servers('dom_a')).toEqual(['10.0.0.2:3000', '10.0.0.3:3000'])
  expect(servers('dom_b')).toEqual(['10.0.0.2:8080', '10.0.0.3:8080'])
})
it('a domain that is added while a release takes over goes to what serves then, never back to the old instances', async () => {
  await routing.serve('shop', OLD)
  current.shop = OLD
  domains.shop!.dom_c = { hostname: 'new.example.com' }
  await Promise.all([routing.serve('shop', NEW), routing.refresh('shop')])
  expect([servers('dom_a'), servers('dom_c')]).toEqual([
    ['10.0.0.2:3000', '10.0.0.3:3000'],
    ['10.0.0.2:3000', '10.0.0.3:3000'],
  ])
})
it('a domain that is gone leaves the edge, and its name can go to another app at once', async () => {
  await routing.serve('shop', OLD)
  domains.blog = { dom_x: domains.shop!.dom_b! }
  delete domains.shop!.dom_b
  await Promise.all([routing.refresh('shop'), routing.serve('blog', NEW)])
  expect([...ingress.routes.keys()]).toEqual(['dom_a', 'dom_x'])
})
it('nothing is sent to the edge that it has already: a pass over unchanged apps costs no call', async () => {
  await routing.serve('shop', OLD)
  const before = ingress.calls.length
  await routing.serve('shop', OLD)
  await routing.refresh('shop')
  expect(ingress.calls.length).toBe(before)
})
it('who waits for the edge goes on once it has taken what was asked before', async () => {
  await routing.serve('shop', OLD)
  domains.shop!.dom_c = { hostname: 'new.example.com' }
  const { setRoute } = ingress
  ingress.setRoute = (route) =>
    new Promise((resolve) => setImmediate(() => setImmediate(resolve))).then(() => setRoute(route))
  routing.refreshSoon('shop')
  await routing.settled()
  expect(servers('dom_c')).toEqual(['10.0.0.1:3000'])
})
it('who waits for an edge that refuses goes on all the same', async () => {
  ingress.failNext('setRoute', 'refused')
  current.shop = OLD
  routing.refreshSoon('shop')
  await routing.settled()
  expect(servers('dom_b')).toEqual(['10.0.0.1:8080'])
})
it('one domain that the edge refuses fails the switch, but the other domains of the app follow it', async () => {
  await routing.serve('shop', OLD)
  ingress.failNext('setRoute', 'refused')
  await expect(routing.serve('shop', NEW)).rejects.toThrow('refused')
  expect(servers('dom_a')).toEqual(['10.0.0.1:3000'])
  expect(servers('dom_b')).toEqual(['10.0.0.2:8080', '10.0.0.3:8080'])
})
it('what could not be set is set by the next pass of the reconciler, and told only then', async () => {
  ingress.failNext('setRoute', 'the edge is away')
  await expect(routing.serve('shop', OLD)).rejects.toThrow()
  expect(routed).toEqual(['dom_b'])
  await routing.retryFailed()
  expect([servers('dom_a'), routed.includes('dom_a')]).toEqual([['10.0.0.1:3000'], true])
})
it('an app that this process has not routed yet is asked for, so that a change of its domains does not take it down', async () => {
  current.shop = NEW
  await routing.refresh('shop')
  expect(servers('dom_a')).toEqual(['10.0.0.2:3000', '10.0.0.3:3000'])
})
it('an app that is deleted leaves the edge with all its domains, and no late change of a domain brings it back', async () => {
  await routing.serve('shop', OLD)
  await routing.remove('shop')
  await routing.refresh('shop')
  expect([...ingress.routes.keys()]).toEqual([])
})
it('the whole state replaces what the edge had; a domain that the edge leaves out is not told as served', async () => {
  domains.blog = { dom_y: { hostname: 'shop.example.com' } }
  await routing.replace(
    new Map([
      ['shop', OLD],
      ['blog', NEW],
    ]),
  )
  expect([...ingress.routes.keys()]).toEqual(['dom_a', 'dom_b'])
  expect(routed).toEqual(['dom_a', 'dom_b'])
})
