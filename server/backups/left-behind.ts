import type { Db } from '#server/kernel/db'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import { isOfVolumeFiles } from './volume-files.ts'

/**
 * Containers beside volumes, which end with the work that they were made for. Where the engine did not remove one, it
 * goes once no such work is under way: it holds its volume, which nobody could delete any more.
 */
export function leftBehind(db: Db): WorkloadOwners {
  let seen: string[] = []
  const isAnyUnderWay = () =>
    db
      .sql(
        `SELECT 1 FROM open_jobs WHERE kind LIKE 'backup.%' OR kind IN ('app.delete', 'database.delete') LIMIT 1`,
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
    releasesAtWork: () => new Set(isAnyUnderWay() ? seen : seen.filter((id) => !isOfVolumeFiles(id))),
    release: () => undefined,
  }
}
