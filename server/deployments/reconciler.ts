import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { REMOVED_PREFIX, removeAway } from '#server/kernel/removal'
import { EngineError, type Instance, type Labels } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'
import {
  createWorkloadReconciler,
  type DesiredOwner,
  type WorkloadOwners,
} from '#server/platform/engine/workload-reconciler'
import { hasWeb, isOf, madeBy, mainOf } from './processes.ts'
import { endRelease } from './stack/ending.ts'
import { createCrashes } from './crashes.ts'
import { NOTHING } from './routing.ts'
import { removeWork } from './steps/source.ts'
import { workloadOf } from './release-workload.ts'
import { desiredProcesses } from './scaler.ts'
import { stackNetworkOf, targetOf, type DeployContext } from './work.ts'

/** What an app cannot be started without, and the engine does not have any more. */
const IS_GONE: readonly string[] = ['volume_missing', 'image_not_found']

interface DesiredApp extends DesiredOwner {
  preview_id: string | null
  status: string
}

export interface ReconcilerPorts {
  /** Apps that should serve now: id and live release. */
  desired(): DesiredApp[]
  /** Every app that has host names, for the whole state of the edge. */
  routed(): { id: string; release_id: string | null }[]
  /** Whether a job works on the app, which then is left alone. */
  busy(app_id: string): boolean
  /** Releases that a job works on. */
  releasesAtWork(): Set<string>
  deploymentsAtWork(): Set<string>
  /**
   * Queues a restart of an app whose instances are in the network of another project; false when one was
   * tried and did not last.
   */
  relocate(app_id: string): boolean
  /** Has the image of what is live made again; false when that was tried and failed. */
  remake(app_id: string): boolean
  /** Whether a backup is under way for which the app stands still. */
  standsStill(app_id: string): boolean
  note(app_id: string, type: string, payload: Record<string, unknown>): void
  /** Other kinds of owners whose workloads are kept running. */
  owners?(): readonly WorkloadOwners[]
}

/** Apps as owners of workloads: what their releases look like, and what follows from how they fare. */
function appOwners(context: DeployContext, ports: ReconcilerPorts): WorkloadOwners<DesiredApp> {
  const { releases } = context
  const crashes = createCrashes(context.clock.now)
  /** What a backup that ended has left paused, since the engine did not let it go on. */
  const letGoOn = async (app: DesiredApp, instances: readonly Instance[]) => {
    const paused = instances.filter(({ state }) => state === 'paused')
    if (ports.standsStill(app.id)) return
    for (const release_id of new Set(paused.map((instance) => instance.release_id)))
      await context.engine.pauseRelease(release_id, false)
  }
  return {
    kind: 'app',
    desired: ports.desired,
    busy: (id) => ports.busy(id) || context.scaler.isWorking(id),
    releasesAtWork: ports.releasesAtWork,
    networks(app) {
      const networks: Record<string, Labels> = { [networkOf(app)]: { project: app.project_id } }
      if (releases.find(app.release_id)?.settings.stack) networks[stackNetworkOf(app.id)] = { app: app.id }
      return networks
    },
    processes(app) {
      const release = releases.find(app.release_id)
      // What is on a server that does not answer can neither be seen nor mended.
      if (!release || !context.ports.servers.answers(release.node_id)) return undefined
      const stopped = release.settings.stack ? context.ports.services.stopped(app.id) : undefined
      return desiredProcesses(context, release).map(({ name, replicas }) => ({
        process: name,
        replicas: stopped?.has(name) ? 0 : replicas,
        ...(release.settings.stack ? { release_id: madeBy(release, name) } : {}),
      }))
    },
    workload(app, process) {
      const release = releases.find(app.release_id)!
      const expected = desiredProcesses(context, release).find(({ name }) => name === process)!
      const is_stopped = release.settings.stack && context.ports.services.stopped(app.id).has(process)
      return workloadOf(releases, release, app, is_stopped ? { ...expected, replicas: 0 } : expected)
    },
    release(release_id) {
      const release = releases.find(release_id)
      return release && { owner_id: release.app_id, stop_grace_s: release.settings.stop_grace_s }
    },
    seen: crashes.note,
    relocate: (app) => ports.relocate(app.id),
    reduce(app) {
      context.scaler
        .settle(app.id)
        .catch((error: unknown) => context.log.warn('An app could not be scaled', { app: app.id, error }))
    },
    restoring: (app, { found, wanted }) => ports.note(app.id, 'app.restored', { found, wanted }),
    async observed(app, instances) {
      const release = releases.find(app.release_id)!
      await letGoOn(app, instances)
      await context.routing.serve(app.id, targetOf(instances, release.settings))
      // An app crashes when nobody answers its requests, whatever else of it still runs.
      const main = mainOf(release.settings)
      const is_asked =
        hasWeb(release.settings) &&
        !(release.settings.stack && context.ports.services.stopped(app.id).has(main))
      const judged = is_asked ? instances.filter(({ process }) => process === main) : instances
      // Somebody has stopped all of its services.
      if (!is_asked && instances.length === 0 && release.settings.stack) return
      const { event, ...payload } = crashes.evaluate(app.status, judged) ?? {}
      if (event) context.apps.transition(app.id, event, payload)
    },
    async failed(app, error) {
      if (!(error instanceof EngineError && IS_GONE.includes(error.code))) return
      if (error.code === 'image_not_found' && ports.remake(app.id)) return
      // Trying again does not bring data back, and an app without its data must not pretend to run.
      await context.routing.serve(app.id, NOTHING)
      const release = releases.find(app.release_id)
      if (release) await endRelease(context.engine, release, 0)
      context.apps.transition(app.id, 'lose', {
        code: error.code,
        error: `${error.message} ${error.hint ?? ''}`.trim(),
      })
    },
    exited: (app_id, event) =>
      ports.note(app_id, event.kind === 'oom' ? 'app.oom_killed' : 'app.instance_exited', {
        instance_id: event.instance_id,
        exit_code: event.exit_code ?? null,
        release_id: event.release_id,
      }),
    async finished() {
      await context.routing.retryFailed()
      const at_work = ports.deploymentsAtWork()
      if (!existsSync(context.work_directory)) return
      for (const name of readdirSync(context.work_directory)) {
        if (name.startsWith('dep_') && !at_work.has(name)) void removeWork(context, name)
        // Left by a process that ended while it removed it; removing it twice does no harm.
        if (name.startsWith(REMOVED_PREFIX)) void removeAway(join(context.work_directory, name))
      }
    },
  }
}

/** Keeps what should run running: apps and their routes, and the other kinds of owners. */
export function createReconciler(context: DeployContext, ports: ReconcilerPorts) {
  const { engine, releases, routing, log } = context
  const apps = appOwners(context, ports) as WorkloadOwners
  return {
    ...createWorkloadReconciler({ engine, log, kinds: () => [apps, ...(ports.owners?.() ?? [])] }),
    /**
     * The whole state of the edge, from what is meant to serve. Throws while the engine cannot be asked: apps
     * serve on from what the edge knows.
     */
    async applyEdge() {
      const instances = await engine.instances({})
      await routing.replace(
        new Map(
          ports.routed().map((app) => {
            const release = app.release_id ? releases.find(app.release_id) : undefined
            const own = release ? instances.filter(isOf(release)) : []
            return [app.id, release ? targetOf(own, release.settings) : NOTHING]
          }),
        ),
      )
    },
  }
}
export type Reconciler = ReturnType<typeof createReconciler>
