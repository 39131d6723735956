import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { Databases } from '#server/databases/assembly'
import { defineJob, Fatal, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from '../classify.ts'
import type { BackupTarget, RestoreRequest } from '../target.ts'
import { type LogContext, tellOf } from './context.ts'
import type { ArchiveRow, CopyRow, PieceRow } from './repository.ts'
import { comesTwice, copyFor, piecesFor } from './windows.ts'

export const RECOVER_KIND = 'database.recover'
export interface RecoverPayload extends Omit<RestoreRequest, 'restore_id'> {
  /** Database whose log is read; for «new» another one than the target. */
  source_id: string
  archive_id: string
  at: string
}
export interface RecoverOptions extends LogContext {
  databases: LogContext['databases'] &
    Pick<Databases, 'spareSpecOf' | 'spares' | 'replace' | 'bringUp' | 'forgetPrevious' | 'requireRestorable'>
  /** How databases begin a restore, go back and tidy up, whatever the data come from. */
  halves: NonNullable<BackupTarget['restore']> & {
    admit(request: RestoreRequest): void
    volumeOf(restore_id: string): string
  }
  pass(archive_id: string, signal: AbortSignal): Promise<void>
}
const LONG_MS = 24 * 3_600_000
const SWITCH_MS = 3_600_000
const SHIP_MS = 600_000
const PAUSE_MS = 500

/** Brings a database, or a new one, to a moment: into something new first, and only then in its place. */
export function defineRecoverJob(options: RecoverOptions): JobDefinition<RecoverPayload, object> {
  const { repository, objects, databases, halves } = options
  const emit = tellOf(options)
  const requestOf = (job_id: string, payload: RecoverPayload): RestoreRequest => {
    const { source_id: _source, archive_id: _archive, at: _at, ...request } = payload
    return { ...request, restore_id: job_id }
  }
  const archiveOf = ({ archive_id }: RecoverPayload): ArchiveRow => {
    const archive = repository.find(archive_id)
    if (!archive) throw new Fatal('gone', 'The archive of the database no longer exists.')
    return archive
  }
  const needs = (payload: RecoverPayload): { copy: CopyRow; pieces: PieceRow[] } => {
    const archive = archiveOf(payload)
    const engine = databases.find(payload.source_id)?.engine ?? payload.engine ?? ''
    const log = databases.engineNamed(engine)?.point_in_time
    const copy = copyFor(repository.copies(archive.id), payload.at)
    const written = copy ? repository.piecesFrom(archive.id, copy.first_piece) : []
    if (comesTwice(written, payload.at))
      throw new Fatal(
        'incomplete',
        `The clock of the server was set back after ${payload.at}, which comes twice in the log and cannot be told apart.`,
        'Nothing was changed. Choose a moment from before the clock was wrong, or one from after the next copy.',
      )
    const pieces = copy && log && piecesFor(copy, written, payload.at, log.next)
    if (!copy || !pieces)
      throw new Fatal(
        'incomplete',
        `A part of the log is missing that is needed to go back to ${payload.at}.`,
        'Nothing was changed. Choose another moment, or restore a backup.',
      )
    return { copy, pieces }
  }
  const specOf = (job_id: string, payload: RecoverPayload, signal: AbortSignal) =>
    databases.spareSpecOf(payload.target_id, halves.volumeOf(job_id), archiveOf(payload).version, signal)
  /** Only the server itself has the end of its log; one that nobody else sees to meanwhile is started here. */
  async function requireServer({ mode, source_id, at }: RecoverPayload, signal: AbortSignal): Promise<void> {
    if (mode === 'in_place') return void (await databases.bringUp(source_id, signal))
    if (await databases.answering(source_id, signal)) return
    throw new Fatal(
      'not_running',
      `The log until ${at} is not archived yet, and the database that has it does not run.`,
      'Start it, or choose an earlier moment.',
    )
  }
  return defineJob<RecoverPayload, object>({
    kind: RECOVER_KIND,
    initial: () => ({}),
    classify,
    steps: [
      {
        name: 'log',
        timeout_ms: SHIP_MS,
        async run({ payload, signal, skip }) {
          const { status, complete_until } = archiveOf(payload)
          if (status === 'closed' || (complete_until ?? '') >= payload.at) return skip()
          await requireServer(payload, signal)
          await options.pass(payload.archive_id, signal)
          while ((archiveOf(payload).complete_until ?? '') < payload.at) {
            await wait(PAUSE_MS, undefined, { signal })
            await options.pass(payload.archive_id, signal)
          }
        },
        // What the request made (the row of a new database) goes with a failure of any step.
        undo: ({ payload, job_id }) => halves.discard(requestOf(job_id, payload)),
      },
      {
        name: 'check',
        timeout_ms: LONG_MS,
        async run({ payload, signal }) {
          const { copy, pieces } = needs(payload)
          await objects.check(archiveOf(payload), copy, pieces, signal)
        },
      },
      {
        name: 'prepare',
        pool: 'backup',
        timeout_ms: LONG_MS,
        async run({ payload, job_id, signal, leavePlace }) {
          halves.admit(requestOf(job_id, payload))
          const { copy, pieces } = needs(payload)
          const archive = archiveOf(payload)
          const spec = await specOf(job_id, payload, signal)
          await options.streaming({ leavePlace }, payload.project_id, (passing) => {
            const noted = (bytes: Readable) => Readable.from(passing(bytes), { objectMode: false })
            const source = {
              copy: () => noted(objects.copy(archive, copy, signal)),
              pieces: () => noted(objects.pieces(archive, pieces, signal)),
              at: payload.at,
              database: archive.database_name,
            }
            return databases.spares.recover(spec, source, signal)
          })
        },
      },
      {
        name: 'switch',
        attempts: 10,
        timeout_ms: SWITCH_MS,
        async run({ payload, job_id, signal }) {
          const { volume_id, version, image_id } = await specOf(job_id, payload, signal)
          await databases.replace(payload.target_id, { volume_id, version, image_id }, signal)
        },
        undo: ({ payload, job_id, signal }) => halves.revert(requestOf(job_id, payload), signal),
      },
      {
        name: 'finish',
        irrevocable: true,
        async run({ payload, skip }) {
          // What a new database was made with is empty.
          const { mode, target_id } = payload
          if (mode !== 'new') return skip()
          const empty = databases.find(target_id)?.previous_volume_id ?? null
          await databases.forgetPrevious(target_id, empty)
        },
      },
    ],
    onEnd(job, outcome) {
      const payload = JSON.parse(job.payload) as RecoverPayload
      const status = outcome.status === 'succeeded' ? 'succeeded' : 'failed'
      halves.ended?.(requestOf(job.id, payload), status)
      const { source_id: database_id, project_id, at, mode, target_id } = payload
      emit({ database_id, project_id }, status === 'succeeded' ? 'recovered' : 'recovery_failed', {
        job_id: job.id,
        at,
        mode,
        restored_id: target_id,
        ...(outcome.failure ? { error: outcome.failure.message } : {}),
      })
    },
  })
}
