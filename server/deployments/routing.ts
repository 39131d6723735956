import type { Log } from '#server/kernel/log'
import type { Certificate, Ingress, Route } from '#server/platform/ingress/ingress'
import { createQueue } from '#server/platform/ingress/runtime/queue'

/** Instances that an app's requests go to; without addresses nothing runs. */
export interface Target {
  addresses: string[] /** The port of the app itself; a domain may name another one. */
  port: number
  /** Instances of each public service of a stack, for the domains that name one. */
  services?: Record<string, { addresses: string[]; port: number }>
}
export const NOTHING: Target = { addresses: [], port: 0 }

export interface RoutingOptions {
  ingress: Ingress
  log: Log
  /** One route for each domain of the app that may be served. */
  routes(app_id: string, target: Target): Route[]
  /** Routes that belong to no app. */
  others(): Route[]
  /** Every certificate that the edge has to show. */
  certificates(): Certificate[]
  /** Hears of certificates among these that the edge did not take. */
  certificatesRefused(ids: readonly string[]): void
  /**
   * What should serve an app according to the rows, for apps that this process has not routed yet; undefined
   * for one that is being deleted.
   */
  current(app_id: string): Promise<Target | undefined>
  /** Hears of domains that the edge serves now. */
  routed(domain_ids: string[]): void
}

/**
 * Which instances the edge sends each app's domains to. Switches of releases and changes of domains meet
 * here, one after another: a domain that is added during a deployment goes to whatever serves at that moment,
 * and never back to what a switch has just left. What could not be set is remembered and tried again by the
 * reconciler.
 */
export function createRouting({
  ingress,
  log,
  routes,
  others,
  certificates,
  certificatesRefused,
  current,
  routed,
}: RoutingOptions) {
  const exclusively = createQueue()
  const targets = new Map<string, Target>()
  /** Per app: what each of its routes was set to. */
  const applied = new Map<string, Map<string, string>>()
  const unfinished = new Set<string>()

  /**
   * Brings the routes of an app to what its domains and its target say. Removes first, so that a name can
   * pass from one route to another.
   */
  const apply = async (app_id: string, desired: Route[]) => {
    const known = applied.get(app_id) ?? new Map<string, string>()
    applied.set(app_id, known)
    unfinished.add(app_id)
    for (const id of [...known.keys()].filter((id) => !desired.some((route) => route.id === id))) {
      await ingress.removeRoute(id)
      known.delete(id)
    }
    const failures: unknown[] = []
    for (const route of desired) {
      const key = JSON.stringify(route)
      if (known.get(route.id) === key) continue
      known.set(route.id, '')
      await ingress.setRoute(route).then(
        () => known.set(route.id, key),
        (error: unknown) => failures.push(error),
      )
    }
    routed(desired.map((route) => route.id).filter((id) => known.get(id)))
    // One domain that the edge refuses does not keep the others of the app from what they need.
    if (failures.length > 0) throw failures[0]
    unfinished.delete(app_id)
  }
  const setTarget = (app_id: string, target: Target) => {
    targets.set(app_id, target)
    return apply(app_id, routes(app_id, target))
  }
  const refresh = (app_id: string) =>
    exclusively(async () => {
      const target = targets.get(app_id) ?? (await current(app_id))
      if (target) await setTarget(app_id, target)
    })

  return {
    /** Sends every domain of the app to these instances; resolves once new requests go there. */
    serve: (app_id: string, target: Target): Promise<void> => exclusively(() => setTarget(app_id, target)),
    /** Addresses of the instances that get the app's requests now. */
    serving: (app_id: string): readonly string[] => targets.get(app_id)?.addresses ?? [],
    /** Applies what has changed about the app's domains; the instances stay. */
    refresh,
    /** The same in the background: what fails is tried again by the next pass of the reconciler. */
    refreshSoon(app_id: string): void {
      refresh(app_id).catch((error: unknown) =>
        log.warn('The domains of an app could not be set at the edge yet', { app: app_id, error }),
      )
    },
    /** Resolves once everything that was asked for before has been tried at the edge. Never rejects. */
    settled: (): Promise<void> => exclusively(async () => undefined),
    /** Takes the app off the edge for good. */
    remove: (app_id: string): Promise<void> =>
      exclusively(async () => {
        for (const route of routes(app_id, NOTHING)) await ingress.removeRoute(route.id)
        await apply(app_id, [])
        targets.delete(app_id)
        applied.delete(app_id)
      }),
    /** Replaces the whole state of the edge. */
    replace: (expected: ReadonlyMap<string, Target>): Promise<void> =>
      exclusively(async () => {
        const all = [...expected].map(([app_id, target]) => ({
          app_id,
          target,
          routes: routes(app_id, target),
        }))
        await ingress.apply({
          routes: [...others(), ...all.flatMap((app) => app.routes)],
          certificates: certificates(),
        })
        const status = await ingress.status()
        const refused = new Set(status.refused?.map((route) => route.route_id))
        certificatesRefused(status.refused_certificates ?? [])
        targets.clear()
        applied.clear()
        unfinished.clear()
        for (const app of all) {
          targets.set(app.app_id, app.target)
          applied.set(app.app_id, new Map(app.routes.map((route) => [route.id, JSON.stringify(route)])))
        }
        routed(all.flatMap((app) => app.routes.map((route) => route.id)).filter((id) => !refused.has(id)))
      }),
    /** Tries again what could not be set. */
    async retryFailed(): Promise<void> {
      for (const app_id of [...unfinished])
        await refresh(app_id).catch((error: unknown) =>
          log.debug('The domains of an app still cannot be set', { app: app_id, error }),
        )
    },
  }
}
export type Routing = ReturnType<typeof createRouting>
