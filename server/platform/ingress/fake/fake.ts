import { checkCertificate } from '../certificates.ts'
import { checkChallenge, checkClaims, checkRoute, sortRoutes } from '../check.ts'
import { createFakeProxy } from './proxy.ts'
import type {
  Certificate,
  EdgeRequest,
  Ingress,
  IngressState,
  RefusedRoute,
  RequestFollowing,
  Route,
  WakeFollowing,
} from '../ingress.ts'
import { IngressError } from '../ingress.ts'
import { hostPathsOf } from '../render/host-paths.ts'

/** One call that changed or asked something, in order. */
export interface FakeIngressCall {
  method: keyof Ingress
  args: unknown[]
}

/**
 * An edge in memory, **for tests only**. It routes and redirects as the real one does, and one contract suite
 * checks both;
 * certificates and the further settings of a route are checked and kept, not acted on.
 */
export interface FakeIngress extends Ingress {
  /** The routes as they are now. */
  readonly routes: ReadonlyMap<string, Route>
  /** The certificates by id. */
  readonly certificates: ReadonlyMap<string, Certificate>
  /** The answers to ACME challenges by `<host name>/<token>`. */
  readonly challenges: ReadonlyMap<string, string>
  readonly calls: readonly FakeIngressCall[]
  /** The next call of this method throws this error and changes nothing. */
  failNext(method: keyof Ingress, message: string): void
  /** The next `apply` leaves this certificate out. */
  refuseNext(certificate_id: string): void
  /**
   * Pretends that a server still holds so many requests; without it, the real requests of the proxy count.
   */
  hold(address: string, port: number, connections: number): void
  /** Tells those who follow that the edge has answered these requests. */
  answered(requests: EdgeRequest[]): void
  /**
   * Starts a real HTTP proxy on 127.0.0.1 on the first call, so that a test can fetch apps by their `Host`
   * header.
   */
  listen(): Promise<{ host: string; port: number }>
}

/** Creates an edge without routes. Call `close()` at the end of a test that called `listen()`. */
export function createFakeIngress(): FakeIngress {
  let routes = new Map<string, Route>()
  const routesAt = (hostname: string) =>
    [...routes.values()].filter((route) => hostPathsOf(route).some(([name]) => name === hostname))
  let refused: RefusedRoute[] = []
  let refused_certificates: string[] = []
  const refusing = new Set<string>()
  let running = false
  let certificates = new Map<string, Certificate>()
  const challenges = new Map<string, string>()
  const calls: FakeIngressCall[] = []
  const failures = new Map<keyof Ingress, string>()
  const held = new Map<string, number>()
  const followers = new Set<RequestFollowing>()
  const wakers = new Set<WakeFollowing>()
  const answered = (requests: EdgeRequest[]) => {
    for (const follower of followers) follower.onRequests(requests, requests.at(-1)?.id ?? '')
  }
  const proxy = createFakeProxy(
    (hostname, path) => {
      const own = routesAt(hostname)
      return longestPath(
        own.length > 0 ? own : routesAt(hostname.replace(/^[a-z0-9_-]{1,63}(?=\.)/, '*')),
        path,
      )
    },
    (request) => answered([request]),
    (app_id) => [...wakers].at(-1)?.onWake(app_id),
  )

  function called(method: keyof Ingress, ...args: unknown[]): void {
    calls.push({ method, args })
    const failure = failures.get(method)
    failures.delete(method)
    if (failure !== undefined) throw new IngressError(failure)
  }
  function replace(next: Route[]): void {
    routes = new Map(next.map((route) => [route.id, structuredClone(route)]))
  }

  return {
    get routes() {
      return routes
    },
    get certificates() {
      return certificates
    },
    challenges,
    calls,
    failNext: (method, message) => void failures.set(method, message),
    refuseNext: (certificate_id) => void refusing.add(certificate_id),
    hold: (address, port, connections) => void held.set(`${address} ${port}`, connections),
    answered,
    listen: () => proxy.listen(),
    async ensure() {
      called('ensure')
      running = true
    },
    async apply(state: IngressState) {
      called('apply', state)
      const sorted = sortRoutes(state.routes)
      refused = sorted.refused
      replace(sorted.accepted)
      for (const certificate of state.certificates ?? []) checkCertificate(certificate)
      if (state.certificates)
        certificates = new Map(state.certificates.map((certificate) => [certificate.id, certificate]))
      refused_certificates = [...refusing].filter((id) => certificates.delete(id))
      refusing.clear()
    },
    async setCertificate(certificate) {
      called('setCertificate', certificate)
      checkCertificate(certificate)
      certificates.set(certificate.id, certificate)
    },
    async removeCertificate(certificate_id) {
      called('removeCertificate', certificate_id)
      certificates.delete(certificate_id)
    },
    async setChallenge(challenge) {
      called('setChallenge', challenge)
      checkChallenge(challenge)
      challenges.set(`${challenge.hostname}/${challenge.token}`, challenge.key_authorization)
    },
    async removeChallenge(challenge) {
      called('removeChallenge', challenge)
      challenges.delete(`${challenge.hostname}/${challenge.token}`)
    },
    async setRoute(route) {
      called('setRoute', route)
      checkRoute(route)
      checkClaims(
        route,
        (hostname, path) =>
          routesAt(hostname).find((known) => (known.path ?? '/') === path && known.id !== route.id)?.id,
      )
      replace([...[...routes.values()].filter((known) => known.id !== route.id), route])
    },
    async removeRoute(route_id) {
      called('removeRoute', route_id)
      replace([...routes.values()].filter((route) => route.id !== route_id))
    },
    async activeConnections(address, port) {
      called('activeConnections', address, port)
      return held.get(`${address} ${port}`) ?? proxy.activeConnections(address, port)
    },
    async traffic() {
      called('traffic')
      return [...routes.keys()].map((route_id) => proxy.traffic(route_id))
    },
    followRequests(following) {
      called('followRequests')
      followers.add(following)
      following.signal.addEventListener('abort', () => followers.delete(following), { once: true })
    },
    followWakes(following) {
      called('followWakes')
      wakers.add(following)
      following.signal.addEventListener('abort', () => wakers.delete(following), { once: true })
    },
    async status() {
      called('status')
      return { running, version: 'fake', refused, refused_certificates }
    },
    async close() {
      called('close')
      await proxy.close()
    },
  }
}

/** Of routes with one name the one with the longest path that the request's is at or below. */
function longestPath(routes: Route[], path: string): Route | undefined {
  const below = ({ path: own = '/' }: Route) => own === '/' || path === own || path.startsWith(`${own}/`)
  return routes.filter(below).sort((left, right) => (right.path ?? '/').length - (left.path ?? '/').length)[0]
}
