import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { type Engine, EngineError } from '#server/platform/engine/engine'
import type { VolumeRepository, VolumeRow } from './repository.ts'

export interface VolumeDataOptions {
  db: Db
  clock: Clock
  engine: Engine
  repository: VolumeRepository
  /** Moves the status by an event of the machine; see the service. */
  transition(id: string, event: 'make' | 'reappear' | 'lose'): void
  note(row: VolumeRow, type: string, payload?: Record<string, unknown>): void
}

/** What the engine calls the data of a volume. */
export const dataOf = ({ id, data_id }: Pick<VolumeRow, 'id' | 'data_id'>): string => data_id ?? id

/**
 * The data behind volumes: a restore fills others beside them, puts those in their place, and lets
 * the old ones go only once everything that uses the volume runs again.
 */
export function createVolumeData(options: VolumeDataOptions) {
  const { db, clock, engine, repository, transition, note } = options
  /** Removes data that are nobody's. */
  const removeData = async (data_id: string): Promise<void> => {
    await engine.removeVolume(data_id)
    repository.deleteSpare(data_id)
  }
  const get = (id: string): VolumeRow => {
    const row = repository.find(id)
    if (!row) throw conflict('The volume was deleted meanwhile.')
    return row
  }
  /** Nobody's from now on: what a cron job or a backup still holds goes with what other work left behind. */
  const forget = async (row: VolumeRow): Promise<void> => {
    const { previous_data_id } = row
    if (previous_data_id === null) return
    db.tx(() => {
      repository.insertSpare(previous_data_id, clock.iso())
      repository.setData(row.id, { ...get(row.id), previous_data_id: null }, clock.iso())
    })
    try {
      await removeData(previous_data_id)
    } catch (error) {
      if (!(error instanceof EngineError && error.code === 'conflict')) throw error
    }
  }
  return {
    /** By a volume's id; a volume that is gone has the name that it always had. */
    dataOf(id: string): string {
      const row = repository.find(id)
      return row ? dataOf(row) : id
    },
    /** Asks the engine whether these are there, and notes those that vanished since they were measured. */
    async lookFor(ids: readonly string[]): Promise<void> {
      for (const id of ids) {
        const row = repository.find(id)
        if (row?.status !== 'ready' || (await engine.findVolume(dataOf(row)))) continue
        const now = repository.find(id)
        if (now?.status === 'ready' && dataOf(now) === dataOf(row)) transition(id, 'lose')
      }
    },
    /** Makes an empty place for data, whatever an earlier attempt left in it. */
    async clear(volume_id: string, data_id: string): Promise<void> {
      // A row goes before them, so that none is forgotten after a crash or a refusal of the engine.
      repository.insertSpare(data_id, clock.iso())
      await engine.removeVolume(data_id)
      await engine.ensureVolume(data_id, { volume: volume_id })
    },
    removeData,
    /** What `clear` made and neither `replaceData` nor `removeData` took since. */
    spareData: repository.spares,
    /** Puts filled data in the place of the present ones, which are kept. Idempotent. */
    replaceData: (id: string, data_id: string): void =>
      db.tx(() => {
        const row = get(id)
        if (dataOf(row) === data_id) return
        // What a volume is being made of has nothing before it.
        const previous_data_id = row.filling === 1 ? null : dataOf(row)
        repository.setData(id, { data_id, previous_data_id, filling: 0 }, clock.iso())
        repository.deleteSpare(data_id)
        transition(id, row.status === 'creating' ? 'make' : 'reappear')
        note(row, 'volume.restored')
      }),
    /** Puts the old data back in their place; what was restored becomes nobody's. Idempotent. */
    returnData: (id: string, data_id: string): void =>
      db.tx(() => {
        const row = repository.find(id)
        if (!row || dataOf(row) !== data_id || row.previous_data_id === null) return
        repository.setData(id, { ...row, data_id: row.previous_data_id, previous_data_id: null }, clock.iso())
        repository.insertSpare(data_id, clock.iso())
        note(row, 'volume.restore_undone')
      }),
    /** Removes the data from before a restore, now or once nothing holds them any more. */
    async forgetData(id: string): Promise<void> {
      const row = repository.find(id)
      if (row) await forget(row)
    },
  }
}
