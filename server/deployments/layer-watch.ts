import type { Clock } from '#server/kernel/clock'
import type { FailureCode } from '#server/kernel/failures'
import type { Log } from '#server/kernel/log'
import type { Engine, Instance } from '#server/platform/engine/engine'

/** What of an app is meant to run. */
interface WatchedApp {
  id: string
  release_id: string
}
export interface LayerWatchOptions {
  engine: Pick<Engine, 'instances' | 'layerBytes'>
  clock: Clock
  log: Log
  /** Bytes that one instance may write beside its volumes. */
  limit_bytes: number
  desired(): readonly WatchedApp[]
  /** Releases whose containers the app has: of a stack also earlier ones. */
  makers(app: WatchedApp): readonly string[]
  /** Apps with a job under way are left to the job. */
  busy(app_id: string): boolean
  /** Ends what an app runs, and says why. */
  stop(app: WatchedApp, reason: { code: FailureCode; error: string }): Promise<void>
}

/** How often an instance is looked at, at most. */
const EVERY_MS = 300_000
/** The engine walks all files of a layer: of its time, a hundredth is spent on this. */
const SHARE_OF_TIME = 100

const shown = (bytes: number) =>
  bytes < 1024 ** 3 ? `${Math.ceil(bytes / 1024 ** 2)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`

/**
 * Watches what instances write into their own containers, where the engine's storage sets no limit. One after
 * another, and the less often the longer it takes, so that apps with many files cost no more than others.
 */
export function createLayerWatch(options: LayerWatchOptions) {
  const { engine, clock, log, limit_bytes } = options
  const due_ms = new Map<string, number>()

  async function measure({ id }: Instance): Promise<number | undefined> {
    const began = clock.monotonic_ms()
    if ((due_ms.get(id) ?? 0) > began) return undefined
    const bytes = await engine.layerBytes(id)
    const took = clock.monotonic_ms() - began
    due_ms.set(id, clock.monotonic_ms() + Math.max(EVERY_MS, took * SHARE_OF_TIME))
    return bytes
  }

  async function look(app: WatchedApp, instances: readonly Instance[]): Promise<void> {
    for (const instance of instances) {
      const bytes = await measure(instance)
      if (bytes === undefined || bytes <= limit_bytes) continue
      log.warn('An instance wrote more than its share of the disk', { app_id: app.id, bytes, limit_bytes })
      return options.stop(app, {
        code: 'disk_exceeded',
        error: `An instance of ${instance.process} wrote ${shown(bytes)} into its container, and ${shown(limit_bytes)} is the most, so the app was stopped. What is to be kept belongs on a volume; what is not, the app has to remove. Then deploy or start it.`,
      })
    }
  }

  return {
    /** Looks at every instance that is due. Never rejects. */
    async pass(): Promise<void> {
      try {
        const all = await engine.instances({})
        const known = new Set(all.map(({ id }) => id))
        for (const id of due_ms.keys()) if (!known.has(id)) due_ms.delete(id)
        for (const app of options.desired()) {
          if (options.busy(app.id)) continue
          const makers = new Set<string | undefined>(options.makers(app))
          await look(
            app,
            all.filter(({ release_id, state }) => makers.has(release_id) && state === 'running'),
          )
        }
      } catch (error) {
        log.warn('What instances write cannot be measured', { error })
      }
    },
  }
}
export type LayerWatch = ReturnType<typeof createLayerWatch>
