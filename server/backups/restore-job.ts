import type { Clock } from '#server/kernel/clock'
import type { Events } from '#server/kernel/events'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import type { Archives } from './archives.ts'
import { backupEvent, paced } from './backup-job.ts'
import { classify } from './classify.ts'
import type { BackupRepository, BackupRow } from './repository.ts'
import type { Target } from './schema.ts'
import type { SlowStreams } from './slow-streams.ts'
import type { RestoreRequest, Targets } from './target.ts'

export const RESTORE_KIND = 'backup.restore'
export type RestorePayload = Omit<RestoreRequest, 'restore_id'> & {
  backup_id: string
  /** What it is a backup of; absent in restores from before it was noted. */
  target?: Target
}

export interface RestoreJobOptions {
  clock: Clock
  events: Events
  repository: BackupRepository
  archives: Archives
  streaming: SlowStreams
  targets(): Targets
  /** Throws 409 when the data of a project, as they are now, leave no room for more. */
  requireStorage(project_id: string): Promise<void>
}
interface State {
  /** What the target keeps of its preparation. */
  prepared?: unknown
  /** What could not be brought back, in sentences. */
  left_out?: string[]
}
const LONG_MS = 24 * 3_600_000
/** Until everything that uses the data has ended and answers again. */
const SWITCH_MS = 3_600_000

/**
 * Checksum first; then the data go into something new, beside what serves. Only the switch changes
 * what serves, and is taken back when that does not answer with its new data; the old ones go after
 * it.
 */
export function defineRestoreJob({
  clock,
  events,
  repository,
  archives,
  streaming,
  targets,
  requireStorage,
}: RestoreJobOptions): JobDefinition {
  const rowOf = (id: string): BackupRow => {
    const row = repository.find(id)
    if (!row) throw new Error(`The backup ${id} is gone.`)
    return row
  }
  /** Also where the backup is gone: what was begun is ended all the same. */
  const halves = ({ backup_id, target = rowOf(backup_id).target }: RestorePayload) => {
    const restore = targets()[target]?.restore
    if (!restore) throw new Error(`A ${target} cannot be restored.`)
    return restore
  }
  const requestOf = (
    job_id: string,
    { backup_id: _, target: __, ...payload }: RestorePayload,
    { prepared }: State,
  ): RestoreRequest => ({ ...payload, restore_id: job_id, prepared })
  return defineJob<RestorePayload, State>({
    kind: RESTORE_KIND,
    initial: () => ({}),
    classify,
    steps: [
      {
        name: 'check',
        timeout_ms: LONG_MS,
        run: ({ payload, signal }) => archives.check(rowOf(payload.backup_id), signal),
        // What the request made (the row of a new resource) goes with a failure of any step.
        undo: ({ payload, job_id, state }) => halves(payload).discard(requestOf(job_id, payload, state)),
      },
      {
        name: 'prepare',
        pool: 'backup',
        timeout_ms: LONG_MS,
        async run({ payload, job_id, state, signal, save, leavePlace }) {
          const row = rowOf(payload.backup_id)
          // Many that were asked for together were all promised the same room.
          if (payload.mode === 'new') await requireStorage(payload.project_id)
          const told = { job_id, mode: payload.mode, restored_id: payload.target_id }
          const emit = paced(clock, (read_bytes) =>
            events.append(
              backupEvent(row, 'restore_progress', { ...told, read_bytes, total_bytes: row.original_bytes }),
            ),
          )
          const remember = (prepared: unknown) => {
            state.prepared = prepared
            save()
          }
          await streaming({ leavePlace }, payload.project_id, (passing) => {
            const open = () => counted(passing(archives.read(row, signal)), emit)
            return halves(payload).prepare(requestOf(job_id, payload, state), open, signal, remember)
          })
        },
      },
      {
        name: 'switch',
        attempts: 10,
        timeout_ms: SWITCH_MS,
        run: ({ payload, job_id, state, signal }) =>
          halves(payload).activate(requestOf(job_id, payload, state), signal),
        // The way back ends and starts the same as the way there; cut off, it would end what just
        // comes up.
        undo_timeout_ms: SWITCH_MS,
        undo: ({ payload, job_id, state, signal }) =>
          halves(payload).revert(requestOf(job_id, payload, state), signal),
      },
      {
        name: 'finish',
        attempts: 10,
        irrevocable: true,
        timeout_ms: LONG_MS,
        async run({ payload, job_id, state, signal, skip }) {
          const { finish } = halves(payload)
          if (!finish) return skip()
          const open = () => archives.read(rowOf(payload.backup_id), signal)
          const left_out = await finish(requestOf(job_id, payload, state), open)
          if (left_out?.length) state.left_out = left_out
        },
      },
    ],
    onEnd(job, outcome, state) {
      const payload = JSON.parse(job.payload) as RestorePayload
      const row = repository.find(payload.backup_id)
      if (!row && !payload.target) return
      const status = outcome.status === 'succeeded' ? 'succeeded' : 'failed'
      halves(payload).ended?.(requestOf(job.id, payload, state), status)
      if (!row) return
      events.append(
        backupEvent(row, `restore_${status}`, {
          job_id: job.id,
          mode: payload.mode,
          restored_id: payload.target_id,
          ...(state.left_out ? { left_out: state.left_out } : {}),
          ...(outcome.failure ? { error: outcome.failure.message } : {}),
        }),
      )
    },
  })
}

/** Tells how much of a stream was read. */
async function* counted(
  source: AsyncIterable<Uint8Array>,
  tell: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.byteLength
    tell(bytes)
    yield chunk
  }
}
