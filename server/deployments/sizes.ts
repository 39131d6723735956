import { hasWeb, processesOf } from './processes.ts'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { ReleaseSettings } from './releases.ts'
import type { Scaler, DeployContext } from './work.ts'

type Size = Pick<ReleaseSettings, 'replicas' | 'limits'>

/** Instances of apps as scaling sees them. */
export interface Sizes extends Pick<Scaler, 'settle' | 'isWorking' | 'stop'> {
  /** How many instances a release has when it is awake, and what each may use. */
  of(release_id: string): (Size & { has_web: boolean; processes: Record<string, Size> }) | undefined
  /** What an instance may use that nobody set limits for. */
  defaults(): Size['limits']
  /** What is live of an app, and what a deployment under way has made. */
  current(app_id: string): string[]
  /** Whether a job changes what runs of the app, so that nothing else may. */
  isHeld(app_id: string): boolean
  /** Addresses of the instances that get requests. */
  serving(app_id: string): readonly string[]
  /** Requests and connections that these hold now. */
  connections(app_id: string): Promise<number>
}

export function createSizes(context: DeployContext): Sizes {
  const { releases, routing, scaler, apps, ports, deployments, ingress } = context
  return {
    settle: scaler.settle,
    isWorking: scaler.isWorking,
    stop: scaler.stop,
    isHeld: ports.isHeld,
    serving: routing.serving,
    defaults: () => context.defaults.instance,
    of(release_id) {
      const settings = releases.find(release_id)?.settings
      if (!settings) return undefined
      const { replicas, limits } = settings
      const processes = processesOf(settings).filter(({ name }) => name !== MAIN_PROCESS)
      return {
        has_web: hasWeb(settings),
        replicas,
        limits,
        processes: Object.fromEntries(
          processes.map((process) => [process.name, { replicas: process.replicas, limits: process.limits }]),
        ),
      }
    },
    current(app_id) {
      const { live_release_id } = apps.get(app_id)
      const made = deployments.unfinished(app_id).flatMap(({ release_id }) => release_id ?? [])
      return [...new Set([...(live_release_id ? [live_release_id] : []), ...made])]
    },
    async connections(app_id) {
      const addresses = routing.serving(app_id)
      const ports_used = new Set(
        ports
          .routes(app_id, { addresses: [...addresses], port: releasePort(app_id) })
          .flatMap(({ servers }) => servers.map(({ port }) => port)),
      )
      let active = 0
      for (const address of addresses)
        for (const port of ports_used) active += await ingress.activeConnections(address, port)
      return active
    },
  }
  function releasePort(app_id: string): number {
    const { live_release_id } = apps.get(app_id)
    return (live_release_id && releases.find(live_release_id)?.settings.port) || 0
  }
}
