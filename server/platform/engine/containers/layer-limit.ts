import type { Connection } from '../connection.ts'
import { EngineError } from '../engine.ts'

/** What the engine says of where it keeps images and layers. */
export interface StorageFacts {
  Driver?: string
  DriverStatus?: [name: string, value: string][] | null
}
/** Drivers whose layers are volumes of a file system that counts what is in each. */
const COUNTING = ['btrfs', 'zfs']
/** A driver that can on one file system, if it is mounted with project quotas; the engine does not tell that. */
const PERHAPS = { driver: 'overlay2', on: 'xfs' }
/** How long a refusal is believed: an operator may mount with quotas and restart the engine. */
const BELIEVED_MS = 600_000

/** Whether the storage of an engine may be able to limit a container's own layer. */
export function mayLimit({ Driver = '', DriverStatus }: StorageFacts): boolean {
  const backing = DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1]
  return COUNTING.includes(Driver) || (Driver === PERHAPS.driver && backing === PERHAPS.on)
}

/** What the create request of a container says about its own layer; nothing where the storage sets no limit. */
export type LayerOption = { StorageOpt?: { size: string } }

export interface LayerLimit {
  /** Makes a container with the option that the storage takes. */
  within<T>(create: (option: LayerOption) => Promise<T>): Promise<T>
}

/**
 * The most that a container may write beside its volumes, set by the engine's own storage where it can: then a
 * program that writes more is told that the disk is full, at once and by itself. Elsewhere what is written is
 * watched (`server/platform/engine/layer-watch.ts`).
 * @param limit_bytes undefined for no limit.
 */
export function createLayerLimit(
  connection: Pick<Connection, 'call'>,
  limit_bytes: number | undefined,
  log: (message: string) => void,
  now: () => number = () => performance.now(),
): LayerLimit {
  let refused_until = Number.NEGATIVE_INFINITY
  let is_able: Promise<boolean> | undefined
  /** A new engine at the same address may store otherwise, so this is asked again as a refusal is. */
  let asked_at = Number.NEGATIVE_INFINITY
  const request = (): Promise<boolean> => {
    if (!is_able || now() - asked_at > BELIEVED_MS) {
      asked_at = now()
      is_able = connection.call<StorageFacts>({ path: '/info' }).then(mayLimit, () => {
        asked_at = Number.NEGATIVE_INFINITY
        return false
      })
    }
    return is_able
  }
  return {
    async within(create) {
      if (limit_bytes === undefined || now() < refused_until || !(await request())) return create({})
      try {
        return await create({ StorageOpt: { size: String(limit_bytes) } })
      } catch (error) {
        if (!(error instanceof EngineError && /storage-opt|quota/i.test(error.message))) throw error
        refused_until = now() + BELIEVED_MS
        log(`The storage of the engine sets no limit for layers, so they are watched: ${error.message}`)
        return create({})
      }
    },
  }
}
