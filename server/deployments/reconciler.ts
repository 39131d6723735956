import { existsSync, readdirSync } from 'node:fs'
import type { Instance } from '#server/platform/engine/engine'
import { createCrashes } from './crashes.ts'
import { NOTHING } from './routing.ts'
import { removeWork } from './steps/source.ts'
import { containerSpec, networkOf, targetOf, type Workshop } from './work.ts'

const PASS_MS = 30_000
const RETRY_MS = 1000

export interface ReconcilerPorts {
  /** Apps that should serve now: id and live release. */
  desired(): { id: string; project_id: string; status: string; release_id: string }[]
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
  bringHome(app_id: string): boolean
  appEvent(app_id: string, event: 'crash' | 'recover', payload: Record<string, unknown>): void
  note(app_id: string, type: string, payload: Record<string, unknown>): void
}

/**
 * Compares what should run with what runs, on every event of the engine and every 30 s, and restores what is
 * missing: instances that vanished or are in the network of another project, addresses that changed,
 * containers and images that nobody owns.
 */
export function createReconciler(shop: Workshop, ports: ReconcilerPorts) {
  const { engine, routing, releases, log } = shop
  const stop = new AbortController()
  /** Undefined until the engine was asked for the first time. */
  let engine_up: boolean | undefined
  let passing: Promise<void> | undefined
  let again = false

  const crashes = createCrashes(shop.clock.now)
  const judge = (app: { id: string; status: string }, instances: readonly Instance[]) => {
    const { event, ...payload } = crashes.judge(app.status, instances) ?? {}
    if (event) ports.appEvent(app.id, event, payload)
  }

  const restore = async (
    app: { id: string; project_id: string; status: string; release_id: string },
    found: readonly Instance[],
  ) => {
    const release = releases.find(app.release_id)
    if (!release) return
    let instances = found.filter((instance) => instance.release_id === release.id)
    // An app that was moved while nothing could be started in its new project: its old network is not its own
    // any more.
    const misplaced = instances.some((instance) => instance.project_id !== app.project_id)
    // Those that serve do so until others are ready; what cannot start beside them is made anew in their
    // place.
    if (misplaced && instances.some(({ state }) => state === 'running') && ports.bringHome(app.id)) return
    const missing =
      misplaced ||
      instances.length < release.settings.replicas ||
      instances.some(
        (instance) =>
          instance.state === 'exited' || instance.state === 'created' || instance.state === 'dead',
      )
    if (missing) {
      ports.note(app.id, 'app.restored', {
        found: instances.length,
        wanted: release.settings.replicas,
      })
      await engine.ensureNetwork(networkOf(app.project_id), { project: app.project_id })
      instances = await engine.ensureRelease(
        {
          ...containerSpec(release, app.project_id, releases.environment(release.id)),
          replicas: release.settings.replicas,
        },
        stop.signal,
      )
      await engine.superviseRelease(release.id, true)
    }
    await routing.serve(app.id, targetOf(instances, release.settings))
    judge(app, instances)
  }

  const removeOrphans = async (instances: readonly Instance[], wanted: ReadonlySet<string>) => {
    const at_work = ports.releasesAtWork()
    for (const release_id of new Set(instances.map((instance) => instance.release_id))) {
      const owner = releases.find(release_id)
      if (
        !release_id ||
        wanted.has(release_id) ||
        at_work.has(release_id) ||
        (owner && ports.busy(owner.app_id))
      )
        continue
      log.info('Removing containers that nobody owns', { release: release_id })
      await engine.removeRelease(release_id, owner?.settings.stop_grace_s ?? 0)
    }
    const deployments = ports.deploymentsAtWork()
    if (existsSync(shop.work_directory))
      for (const name of readdirSync(shop.work_directory))
        if (name.startsWith('dep_') && !deployments.has(name)) removeWork(shop, name)
  }

  const pass = async () => {
    const instances = await engine.instances({})
    engine_up = true
    crashes.note(instances)
    const desired = ports.desired()
    for (const app of desired) {
      if (stop.signal.aborted) return
      if (ports.busy(app.id)) continue
      try {
        await restore(
          app,
          instances.filter((instance) => instance.app_id === app.id),
        )
      } catch (error) {
        log.warn('An app could not be restored', { app: app.id, error })
      }
    }
    await routing.mend()
    await removeOrphans(instances, new Set(desired.map((app) => app.release_id)))
  }

  /** One pass at a time; asking during a pass makes another follow. */
  const reconcile = (): Promise<void> => {
    if (passing) {
      again = true
      return passing
    }
    passing = pass()
      .catch((error: unknown) => {
        if (engine_up && !stop.signal.aborted) log.warn('The engine cannot be asked', { error })
        engine_up = false
      })
      .then(() => {
        passing = undefined
        if (again && !stop.signal.aborted) {
          again = false
          return reconcile()
        }
        return undefined
      })
    return passing
  }

  const watch = async () => {
    while (!stop.signal.aborted) {
      try {
        await reconcile()
        for await (const event of engine.events(stop.signal)) {
          engine_up = true
          // A command beside the app ends by itself, and nothing has to be restored after it.
          if (event.one_off) continue
          const busy = event.app_id !== undefined && ports.busy(event.app_id)
          if (event.kind === 'die' || event.kind === 'oom') {
            // While a job works on the app, instances end because it ends them.
            if (event.app_id && event.release_id && !busy)
              ports.note(event.app_id, event.kind === 'oom' ? 'app.oom_killed' : 'app.instance_exited', {
                instance_id: event.instance_id,
                exit_code: event.exit_code ?? null,
                release_id: event.release_id,
              })
          }
          // A pass would leave such an app alone, and would ask for every instance of the server just when
          // the job starts one.
          if (!busy && (event.kind === 'start' || event.kind === 'die' || event.kind === 'destroy'))
            void reconcile()
        }
      } catch (error) {
        if (!stop.signal.aborted) log.debug('Events of the engine ended', { error })
      }
      engine_up = await engine.version().then(
        () => true,
        () => false,
      )
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
    }
  }

  let timer: NodeJS.Timeout | undefined
  return {
    reconcile,
    /** Whether the engine did not answer when it was asked last. */
    engineIsDown: () => engine_up === false,
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
            return [
              app.id,
              release
                ? targetOf(
                    instances.filter((instance) => instance.release_id === release.id),
                    release.settings,
                  )
                : NOTHING,
            ]
          }),
        ),
      )
    },
    async start() {
      engine_up = await engine.version().then(
        () => true,
        () => false,
      )
      void watch()
      timer = setInterval(() => void reconcile(), PASS_MS)
      timer.unref()
    },
    async stop() {
      clearInterval(timer)
      stop.abort()
      await passing?.catch(() => undefined)
    },
  }
}
export type Reconciler = ReturnType<typeof createReconciler>
