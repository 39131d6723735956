import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import type { Log } from '#server/kernel/log'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import type { Archives } from './archives.ts'
import { classify } from './classify.ts'
import { backupMachine } from './machine.ts'
import { type BackupRepository, type BackupRow, PLATFORM_PROJECT } from './repository.ts'
import type { Room } from './room.ts'
import type { SlowStreams } from './slow-streams.ts'
import type { DumpOptions, Targets } from './target.ts'

export const BACKUP_KIND = 'backup.create'
export interface BackupPayload {
  backup_id: string
}
interface State {
  apps: string[]
  began?: Mark
}
export interface BackupJobOptions {
  db: Db
  clock: Clock
  events: Events
  log: Log
  repository: BackupRepository
  archives: Archives
  requireRoom: Room
  streaming: SlowStreams
  targets(): Targets
  /** Removes what came of a backup that failed, now or once its destination lets it go. */
  discard(row: BackupRow): Promise<void>
  /** Deletes what the schedule of this backup no longer keeps. */
  retain(schedule_id: string, signal: AbortSignal): Promise<void>
}

/** Clients hear of the progress at most this often. */
const PROGRESS_MS = 2000
/** A dump may be large; it is not given up while it goes on. */
const DUMP_TIMEOUT_MS = 24 * 3_600_000

/** Hands a number on at most every two seconds. */
export function paced(clock: Clock, emit: (bytes: number) => void): (bytes: number) => void {
  let told_ms = clock.monotonic_ms()
  return (bytes) => {
    if (clock.monotonic_ms() - told_ms < PROGRESS_MS) return
    told_ms = clock.monotonic_ms()
    emit(bytes)
  }
}

/** Tells of a backup, to those who may see its project. */
export const backupEvent = (row: BackupRow, what: string, payload: Record<string, unknown> = {}) => ({
  type: `backup.${what}`,
  project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
  app_id: row.target === 'app' ? row.target_id : null,
  payload: {
    backup_id: row.id,
    target: row.target,
    target_id: row.target_id,
    target_name: row.target_name,
    ...payload,
  },
})

/** Streams a copy of the target to its destination, describes it there, and only then lets older ones go. */
export function defineBackupJob(options: BackupJobOptions): JobDefinition {
  const { db, clock, events, repository, archives } = options
  const rowOf = (id: string): BackupRow => {
    const row = repository.find(id)
    if (!row) throw new Error(`The backup ${id} is gone.`)
    return row
  }
  const progressOf = (row: BackupRow) =>
    paced(clock, (written_bytes) => events.append(backupEvent(row, 'progress', { written_bytes })))
  return defineJob<BackupPayload, State>({
    kind: BACKUP_KIND,
    initial: () => ({ apps: [] }),
    classify,
    steps: [
      {
        name: 'dump',
        pool: 'backup',
        timeout_ms: DUMP_TIMEOUT_MS,
        async run({ payload, state, signal, leavePlace }) {
          const row = rowOf(payload.backup_id)
          const target = options.targets()[row.target]
          if (!target) throw new Error(`A ${row.target} cannot be backed up.`)
          // Many may have been asked for before the first of them had a size.
          options.requireRoom(row.project_id)
          db.tx(() => {
            const to = backupMachine.next(rowOf(row.id).status, 'begin')
            repository.setStatus(row.id, rowOf(row.id).status, to)
            events.append(backupEvent(row, 'started'))
          })
          state.began = markNow(clock)
          const subject = target.find(row.target_id)
          state.apps = subject?.apps ?? []
          const how: DumpOptions = {
            pause_app: row.pause_app === 1,
            work_id: row.id,
            without: row.without === null ? [] : (JSON.parse(row.without) as DumpOptions['without']),
          }
          const written = await options.streaming({ leavePlace }, row.project_id, async (passing) => {
            const { bytes } = await target.dump(row.target_id, how, signal)
            return archives.write(row, passing(bytes), signal, progressOf(row))
          })
          events.append(backupEvent(row, 'progress', { written_bytes: written.size_bytes }))
          repository.update(row.id, {
            ...written,
            engine: subject?.engine ?? row.engine,
            version: subject?.version ?? row.version,
          })
        },
        async undo({ payload }) {
          const row = rowOf(payload.backup_id)
          await options.targets()[row.target]?.tidy?.(row.id)
          await options.discard(row)
        },
      },
      {
        name: 'describe',
        run: async ({ payload, state }) => archives.describe(rowOf(payload.backup_id), { apps: state.apps }),
      },
      {
        name: 'retain',
        irrevocable: true,
        async run({ payload, state, signal, skip }) {
          const row = rowOf(payload.backup_id)
          if (row.schedule_id === null) return skip()
          // This one is whole by now: it counts, so that retention sees it as the newest.
          if (row.status === 'running') finish(row, state.began)
          await options.retain(row.schedule_id, signal)
        },
      },
    ],
    onEnd(_job, outcome, state) {
      const row = repository.find((JSON.parse(_job.payload) as BackupPayload).backup_id)
      if (!row) return
      if (outcome.status === 'succeeded') {
        if (row.status === 'running') finish(row, state.began)
        return
      }
      const failure = outcome.failure
      const error =
        outcome.status === 'cancelled'
          ? 'The backup was cancelled.'
          : [failure?.message, failure?.hint].filter(Boolean).join(' ')
      repository.setStatus(row.id, row.status, backupMachine.next(row.status, 'fail'))
      repository.update(row.id, { error, finished_at: clock.iso(), size_bytes: null, sha256: null })
      events.append(backupEvent(row, 'failed', { error }))
    },
  })
  function finish(row: BackupRow, began?: Mark): void {
    db.tx(() => {
      repository.setStatus(row.id, row.status, backupMachine.next(row.status, 'succeed'))
      const duration_ms = began ? sinceMark(clock, began) : null
      repository.update(row.id, { finished_at: clock.iso(), duration_ms, error: null })
      const { size_bytes, sha256 } = row
      events.append(backupEvent(row, 'succeeded', { size_bytes, sha256 }))
    })
  }
}
