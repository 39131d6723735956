import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import { isOfVolumeFiles } from './volume-files.ts'

/** Something that restores and trials make beside what serves, and remove at their end. */
export interface Spare {
  /** Names of all that are there. */
  all(): readonly string[]
  remove(name: string): Promise<void>
}

/**
 * Containers beside volumes, which end with the work that they were made for. Where the engine did
 * not remove one, it goes once no such work is under way: it holds its volume, which nobody could
 * delete any more. So do the volumes and servers that were filled there.
 */
export function leftBehind(db: Db, log: Log, spares: readonly Spare[]): WorkloadOwners {
  let seen: string[] = []
  const isAnyUnderWay = () =>
    db
      .sql(
        `SELECT 1 FROM open_jobs
         WHERE kind LIKE 'backup.%' OR kind LIKE 'database.%' OR kind = 'app.delete' LIMIT 1`,
      )
      .get() !== undefined
  return {
    kind: 'task',
    desired: () => [],
    processes: () => undefined,
    workload() {
      throw new Error('Nothing beside a volume is kept running.')
    },
    networks: () => ({}),
    busy: () => false,
    seen(instances) {
      seen = instances.map(({ release_id }) => release_id)
    },
    // What has an owner that this version does not know is shown as a task as well, and none of ours.
    async finished() {
      for (const { all, remove } of spares)
        for (const name of all()) {
          if (isAnyUnderWay()) return
          await remove(name).catch((error: unknown) => {
            log.warn('What a restore left behind could not be removed', { name, error })
          })
        }
    },
    releasesAtWork: () => new Set(isAnyUnderWay() ? seen : seen.filter((id) => !isOfVolumeFiles(id))),
    release: () => undefined,
  }
}
