import type { Clock } from '#server/kernel/clock'
import type { FailureCode } from '#server/kernel/failures'
import type { Log } from '#server/kernel/log'
import { createPace } from '#server/kernel/pace'
import type { Engine, Instance } from './engine.ts'

/** What is meant to run: an app with its release, or a database with its data. */
export interface WatchedLayers {
  id: string
  release_id: string
}
export interface LayerWatchOptions {
  engine: Pick<Engine, 'instances' | 'layerBytes'>
  clock: Clock
  log: Log
  /** Bytes that one instance may write beside its volumes. */
  limit_bytes: number
  desired(): readonly WatchedLayers[]
  /** Releases whose containers it has: of a stack also earlier ones. */
  makers(one: WatchedLayers): readonly string[]
  /** What has a job under way is left to the job. */
  busy(id: string): boolean
  /** What is told when an instance wrote more than it may. */
  sentence(instance: Instance, wrote: string, most: string): string
  /** Ends what runs of it, and says why. */
  stop(one: WatchedLayers, reason: { code: FailureCode; error: string }): Promise<void>
}

/** What an instance on this server wrote beside its volumes, as it was measured last. */
export interface WrittenLayer {
  instance_id: string
  owner_id: string
  project_id: string
  bytes: number
}

/** How often an instance is looked at, at most. */
const EVERY_MS = 300_000
/** The engine walks all files of a layer: of its time, a hundredth is spent on this. */
const SHARE_OF_TIME = 100

const shown = (bytes: number) =>
  bytes < 1024 ** 3 ? `${Math.ceil(bytes / 1024 ** 2)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`

/**
 * Watches what instances write into their own containers, where the engine's storage sets no limit.
 * One after another, and the less often the longer it takes, so that apps with many files cost no
 * more than others.
 */
export function createLayerWatch(options: LayerWatchOptions) {
  const { engine, clock, log, limit_bytes } = options
  const due_ms = new Map<string, number>()
  const written = new Map<string, WrittenLayer>()

  const isDue = ({ id }: Instance): boolean => (due_ms.get(id) ?? 0) <= clock.monotonic_ms()
  async function measure({ id, owner, project_id, node }: Instance): Promise<number | undefined> {
    const began = clock.monotonic_ms()
    let least_ms = EVERY_MS
    try {
      const bytes = await engine.layerBytes(id)
      // What is on another server takes nothing of this disk.
      if (bytes !== undefined && node === undefined)
        written.set(id, { instance_id: id, owner_id: owner.id, project_id, bytes })
      return bytes
    } catch (error) {
      // An engine that tells nothing of one container may tell of all others.
      log.warn('What an instance writes cannot be measured', { instance: id, error })
      least_ms = 0
      return undefined
    } finally {
      const took = clock.monotonic_ms() - began
      due_ms.set(id, clock.monotonic_ms() + Math.max(least_ms, took * SHARE_OF_TIME))
    }
  }

  async function look(one: WatchedLayers, instances: readonly Instance[]): Promise<void> {
    for (const instance of instances) {
      const bytes = isDue(instance) ? await measure(instance) : undefined
      if (bytes === undefined || bytes <= limit_bytes) continue
      log.warn('An instance wrote more than its share of the disk', { id: one.id, bytes, limit_bytes })
      return options.stop(one, {
        code: 'disk_exceeded',
        error: options.sentence(instance, shown(bytes), shown(limit_bytes)),
      })
    }
  }
  /** What runs of everything that is meant to, one after another. */
  async function* watched(): AsyncGenerator<[one: WatchedLayers, instances: Instance[]]> {
    const all = await engine.instances({})
    const known = new Set(all.map(({ id }) => id))
    for (const kept of [due_ms, written]) for (const id of kept.keys()) if (!known.has(id)) kept.delete(id)
    // One that waits to be started again keeps what it wrote, and writes on after that.
    const of_release = Map.groupBy(
      all.filter(({ state }) => state !== 'dead'),
      ({ release_id }) => release_id,
    )
    const pace = createPace('layers')
    for (const one of options.desired()) {
      const rest = pace.rest()
      if (rest) await rest
      const makers = new Set(options.makers(one))
      yield [one, [...makers].flatMap((release_id) => of_release.get(release_id) ?? [])]
    }
  }

  return {
    /** Looks at every instance that is due. Never rejects. */
    async pass(): Promise<void> {
      try {
        for await (const [one, instances] of watched()) if (!options.busy(one.id)) await look(one, instances)
      } catch (error) {
        log.warn('What instances write cannot be measured', { error })
      }
    },
    /** What each instance on this server wrote, as far as it was measured. */
    written: (): readonly WrittenLayer[] => [...written.values()],
    /** Measures all that are on this server, whether they are due or not: the disk is full. */
    async measure(): Promise<void> {
      for await (const [, instances] of watched())
        for (const instance of instances) if (instance.node === undefined) await measure(instance)
    },
  }
}
export type LayerWatch = ReturnType<typeof createLayerWatch>
