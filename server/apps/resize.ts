import type { Clock } from '#server/kernel/clock'
import { changedColumns } from './configuration.ts'
import type { AppRepository, AppRow } from './repository.ts'
import type { AppChange } from './schema.ts'
import type { createAppShares } from './shares.ts'

/**
 * Changes how many instances an app has and what they may use, in the current transaction; throws 409 when the
 * project has no room for it. Whoever asks sees to what runs.
 */
export const createResize =
  ({
    repository,
    shares,
    clock,
    get,
  }: {
    repository: Pick<AppRepository, 'update'>
    shares: Pick<ReturnType<typeof createAppShares>, 'within'>
    clock: Clock
    get(id: string): AppRow
  }) =>
  (id: string, change: Pick<AppChange, 'replicas' | 'limits' | 'processes'>, then: () => void): AppRow => {
    const before = get(id)
    shares.within(before.project_id, () => {
      repository.update(id, changedColumns(before, change), clock.iso())
      then()
    })
    return get(id)
  }
