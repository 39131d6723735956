import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import { writeInPieces } from '#server/kernel/write-in-pieces'
import type { Engine } from '#server/platform/engine/engine'
import type { VolumeUsage } from '#server/platform/engine/workload'
import { dataOf } from './data.ts'
import type { VolumeRepository, VolumeRow } from './repository.ts'

export interface MeasuringOptions {
  db: Db
  clock: Clock
  engine: Pick<Engine, 'volumeUsage'>
  log: Log
  repository: VolumeRepository
  /** Makes on the engine what a row asks for. */
  make(row: VolumeRow): Promise<void>
  /** Whether nobody goes on with the deletion of one, and nothing holds it. */
  isLeft(row: VolumeRow): boolean
  /** Removes the data and the row of one whose deletion was tried before. */
  destroy(id: string): Promise<void>
  /** Moves the status by an event of the machine. */
  transition(id: string, event: 'reappear' | 'lose'): void
  note(row: VolumeRow, type: string, payload: Record<string, unknown>): void
}

/**
 * Reads from the engine what each volume holds, and tells which are gone; finishes what a crash
 * left between a row and the engine. Answers what the engine said.
 */
export function createMeasuring(options: MeasuringOptions) {
  const { db, clock, engine, log, repository, make, destroy, isLeft, transition, note } = options

  async function finishStarted(): Promise<void> {
    for (const row of repository.all()) {
      if (row.filling === 1) continue
      if (row.status === 'creating') await make(row)
      if (row.status === 'deleting' && isLeft(row))
        await destroy(row.id).catch((error: unknown) =>
          log.warn('A volume could not be deleted', { volume: row.id, error }),
        )
    }
  }
  function take(row: VolumeRow, used_bytes: number): void {
    transition(row.id, 'reappear')
    repository.setUsage(row.id, used_bytes, clock.iso())
    const { size_bytes, used_bytes: before } = row
    if (size_bytes !== null && used_bytes > size_bytes && (before ?? 0) <= size_bytes)
      note(row, 'volume.over_size', { size_bytes, used_bytes })
  }

  return async (signal?: AbortSignal): Promise<ReadonlyMap<string, VolumeUsage>> => {
    await finishStarted()
    // The engine may take seconds for its answer, and data that were made meanwhile are not in it.
    const made_before = new Set(
      repository
        .all()
        .filter(({ status }) => status === 'ready')
        .map(dataOf),
    )
    const usage = await engine.volumeUsage(signal)
    await writeInPieces(db, repository.all(), ({ id }) => {
      const row = repository.find(id)
      if (!row || row.status === 'creating' || row.status === 'deleting') return
      const found = usage.get(dataOf(row))
      if (found) take(row, found.used_bytes)
      else if (made_before.has(dataOf(row))) transition(id, 'lose')
    })
    return usage
  }
}
