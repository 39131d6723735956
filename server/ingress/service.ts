import type { Base } from '#server/platform/base'
import { createMeta } from '#server/kernel/meta'
import { createEdgeWait } from './edge-settled.ts'
import { edgeOrPatience, watchEdge } from './edge-watchdog.ts'
import { createFrontDoor, type FrontDoor } from './front-door.ts'
import { createPlatformDomain, type PlatformDomain } from './platform-domain.ts'

export interface IngressNeeds {
  certificates: { settled(): Promise<void> }
  deployments: { routesSettled(): Promise<void>; reconciler: { applyEdge(): Promise<void> } }
  identity: { edge_proof: string }
  settings: { domain(): { dashboard_domain: string | null } }
}

/** The edge as a whole: that it runs, that it knows everything, and the route to Portreeve itself. */
export interface IngressService extends PlatformDomain, Pick<FrontDoor, 'cameIn'> {
  /**
   * Resolves once the edge obeys everything that was asked for so far, or after two seconds. Never
   * rejects.
   */
  settled(): Promise<void>
  /** Brings the edge up, keeps it up, and starts background work once it serves, or has not come for a minute. */
  start(): void
  stop(): void
}

export function createIngressService(
  { ingress, config, db, door, log, jobs }: Base,
  use: IngressNeeds,
): IngressService {
  const hostname = () => use.settings.domain().dashboard_domain
  const platform_domain = createPlatformDomain({
    ingress,
    config,
    log,
    proof: use.identity.edge_proof,
    hostname,
  })
  const front_door = createFrontDoor({ door, config, log, hostname, meta: createMeta(db) })
  const stopping = new AbortController()
  return {
    ...platform_domain,
    applySoon() {
      platform_domain.applySoon()
      front_door.applySoon()
    },
    cameIn: front_door.cameIn,
    settled: createEdgeWait([
      () => use.certificates.settled(),
      () => use.deployments.routesSettled(),
      platform_domain.settled,
    ]),
    start() {
      front_door.applySoon()
      const serves = watchEdge({
        ingress,
        log,
        async apply() {
          await platform_domain.apply()
          await use.deployments.reconciler.applyEdge()
        },
        signal: stopping.signal,
      })
      void edgeOrPatience(serves, stopping.signal).then(() => {
        if (!stopping.signal.aborted) jobs.start()
      })
    },
    stop() {
      stopping.abort()
      front_door.stop()
    },
  }
}
