import type { FailureCode } from '#server/kernel/failures'
import type { Configuration } from '#server/apps/configuration'
import type { BuildPlan } from '#server/builds/plan'
import type { ReleaseVariables } from '#server/env/resolved'
import type { Share } from '#server/kernel/shares'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import type { Holders } from './holders.ts'
import type { LayerWatch } from '#server/platform/engine/layer-watch'
import type { LifecyclePayload } from './lifecycle.ts'
import type { DeploymentLogs } from './logs.ts'
import type { DesiredProcess } from './processes.ts'
import type { Reconciler } from './reconciler.ts'
import type { Sizes } from './sizes.ts'
import type { Runtime } from './runtime.ts'
import type { StackRuntime } from './stack/runtime.ts'
import type { Deployments } from './service.ts'

/** Deployments as other modules see them. */
export interface DeploymentsDomain extends Deployments {
  layers: LayerWatch
  /** Removes what is kept of repositories that nobody deployed from for 30 days. */
  pruneMirrors(): Promise<void>
  /** Removes commands beside apps that nobody waits for any more. */
  removeLeftCommands(): Promise<void>
  /** Uploaded archives of which no deployment knows; for a start only. */
  removeUnknownArchives(): void
  /** Stops an app that is meant to run and that no job is about. */
  stopApp(app_id: string, reason: { code: FailureCode; error: string }): Promise<'stopped' | 'idle' | 'busy'>
  /** Forgets some of the deployments of an app that is going; returns how many. */
  forgetHistory(app_id: string): number
  /** Forgets deployments of apps that have had very many; returns how many. */
  forgetOld(): Promise<number>
  logs: DeploymentLogs
  runtime: Runtime
  reconciler: Reconciler
  /** What runs on volumes: paused, ended and started again around backups and restores. */
  holders: Holders
  /** How many instances apps have, and how large they are. */
  sizes: Sizes
  /** Has the reconciler keep the workloads of another kind of owner running. To be called before it starts. */
  keepRunning(owners: WorkloadOwners): void
  /** Images that releases to roll back to, and those that are being made, need. */
  neededImages(): Promise<string[]>
  /** An image was removed to free the disk: no release can use it any more. */
  imageRemoved(image_id: string): void
  /** Throws ENGINE_UNAVAILABLE when the engine does not answer. */
  requireEngine(): void
  /** What runs of compose apps, service by service. */
  stack: StackRuntime
  /** Whether a job of the app is queued or under way. */
  isBusy(app_id: string): boolean
  /** Commit of what is live; null when nothing is, or it has none. */
  liveCommit(app_id: string): string | null
  /** Apps that are to run whose live release is on an added server. */
  placed(): { app_id: string; node_id: string; is_busy: boolean }[]
  /** Whether a deployment is under way whose release is on an added server. */
  isBeingPlaced(node_id: string): boolean
  /**
   * The added server that a release is on; null for that of Portreeve, undefined when there is none of that id.
   * @param app_id one of another app is on no added server.
   */
  nodeOf(release_id: string, app_id?: string): string | null | undefined
  /** Ids of the mounts that a release has, sorted. */
  releaseMountIds(release_id: string): string[]
  /** What the next release of an app runs, as far as it is known before. */
  desiredProcesses(app_id: string): DesiredProcess[]
  /** Branch that the app was last built from where nobody chose one; null before its first deployment. */
  branchOf(app_id: string): string | null
  /** Deployment that made a release; null when there is none of that id. */
  deploymentOf(release_id: string): string | null
  releaseConfiguration(release_id: string): Configuration | undefined
  /** What each release of an app may use that serves, or that has room and is about to. */
  releaseShares(app: { id: string; live_release_id: string | null }): Share[]
  /** Cron jobs that the files of what is live declare; undefined when nothing is live. */
  declaredCronJobs(app_id: string): BuildPlan['cron_jobs'] | undefined
  /** Variables of a release in clear. */
  releaseVariables(release_id: string): ReleaseVariables
  /** Brings an app's routes to what its domains and instances say; rejects when the edge does not take it. */
  refreshRoutes(app_id: string): Promise<unknown>
  /** The same in the background, tried again until it works. */
  refreshRoutesSoon(app_id: string): void
  /** Resolves once the routes that were asked for so far have been tried at the edge. */
  routesSettled(): Promise<void>
  /** Queues a stop, start or deletion in the current transaction; asked for twice it happens once. The job that does it. */
  enqueueLifecycle(
    kind: 'app.stop' | 'app.start' | 'app.delete',
    app: { id: string; project_id: string },
    more?: Omit<LifecyclePayload, 'app_id' | 'project_id'>,
  ): string
}
