import type { Configuration } from '#server/apps/configuration'
import type { AppChange } from '#server/apps/schema'
import type { Actor } from '#server/kernel/access'
import type { Base } from '#server/platform/base'
import type { TrafficSample } from '#server/traffic/samples'
import type { ScalingRepository } from './repository.ts'

/** An app as scaling sees it. */
export interface ScaledApp {
  id: string
  project_id: string
  status: string
  live_release_id: string | null
  configuration: Pick<Configuration, 'replicas' | 'limits' | 'processes'>
}
/** What one instance may use. */
export interface Size {
  cpus: number
  memory_bytes: number
}
/** What instances of a release have: one that is live, or that a deployment is about to bring. */
export interface ReleaseSize {
  has_web: boolean
  replicas: number
  limits: Size
  /** Processes beside web, by name. */
  processes: Record<string, { replicas: number; limits: Size }>
}
/** An instance of what is live. */
export interface SeenInstance {
  id: string
  process: string
  index: number
  state: string
  receives_requests: boolean
  limits?: Size
}

/** What scaling needs of other domains; handed in at composition. */
export interface ScalingPorts {
  app(id: string): ScaledApp | undefined
  /** Changes what the app is configured with; throws 409 when the project has no room for it. */
  resize(app_id: string, change: Pick<AppChange, 'replicas' | 'limits' | 'processes'>, then: () => void): void
  /** Tells of an app on its timeline. */
  note(app_id: string, type: string, payload: Record<string, unknown>, actor?: Actor): void
  requireEngine(): void
  /** Throws 409 when so many replicas cannot share the volumes of the app. */
  requireReplicas(app_id: string, replicas: number): void
  /** What an app gets that names no limits of its own. */
  defaultLimits(): Size
  sizeOf(release_id: string): ReleaseSize | undefined
  /** Releases that run or are about to: what is live, and what a deployment under way has made. */
  currentReleases(app_id: string): string[]
  instances(app: ScaledApp): Promise<SeenInstance[]>
  /** Brings what runs of an app to what should; resolves once it is so. */
  settle(app_id: string): Promise<void>
  isScaling(app_id: string): boolean
  /** Whether a job changes what runs of the app, so that nothing else may. */
  isHeld(app_id: string): boolean
  /** Requests and connections that instances of the app hold. */
  connections(app_id: string): Promise<number>
  /** How many instances get the app's requests. */
  servingCount(app_id: string): number
  refreshRoutes(app_id: string): void
  /** A text of an app without its secrets. */
  redact(app_id: string, text: string): string
  /** What an instance used when it was looked at last. */
  reading(instance_id: string): { at_ms: number; cpu_cores: number; memory_bytes: number } | undefined
  /** Requests per app and ten seconds that began at or after a time. */
  traffic(from_ms: number): TrafficSample[]
  /** The requests of an app in the last ten seconds that are complete. */
  lastPeriod(app_id: string): { requests: number; latency_p95_ms: number | null }
}
export interface ScalingOptions extends Pick<Base, 'db' | 'clock' | 'events' | 'audit' | 'log'> {
  ports: ScalingPorts
}
/** What the parts of scaling share. */
export interface ScalingContext extends ScalingOptions {
  repository: ScalingRepository
  /** Throws 404. */
  app(id: string): ScaledApp
  /** How large the live release is; undefined before the first one. */
  liveSize(app: ScaledApp): ReleaseSize | undefined
  /** Instances of the web process that an app has when it is awake. */
  countOf(app: ScaledApp): number
  /** Brings what runs to what should, in the background. */
  apply(app_id: string): void
}
