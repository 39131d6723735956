import type { Limits, Processes } from '#server/apps/configuration-schema'
import type { Reservations } from './schema.ts'

/** What of a release is not fixed: how many instances it has, and what each of them may use. */
export interface ReleaseScale {
  /** Instances of the main process as somebody configured them. */
  replicas?: number
  /** Instances of the main process as a rule decided; goes before what is configured. */
  decided?: number
  limits?: Limits
  reservations?: Reservations
  processes?: Processes
}

/** Scaling as other modules see it. */
export interface Scaling {
  /** What of a release is not as it was made; nothing where all of it is. */
  scaleOf(release: { id: string; app_id: string }): ReleaseScale | undefined
  /** Instances that a rule decided on; undefined without a rule. */
  decidedReplicas(app_id: string): number | undefined
  /** Whether the app has no instance until somebody asks for it. */
  isAsleep(app_id: string): boolean
  /** Whether requests of the app are held: it sleeps or is about to have its first instance. */
  isWaiting(app_id: string): boolean
  sleepAgain(app_id: string): void
  wentLive(app_id: string): void
}
