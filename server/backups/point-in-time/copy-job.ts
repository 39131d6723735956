import { setTimeout as wait } from 'node:timers/promises'
import { defineJob, Fatal, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from '../classify.ts'
import { type LogContext, tellOf } from './context.ts'
import type { ArchiveRow, CopyRow } from './repository.ts'
import type { Shipping } from './shipping.ts'

export const COPY_KIND = 'database.copy_files'
export interface CopyPayload {
  archive_id: string
  copy_id: string
}
/** The archive is no longer the one that the log of its database goes to. */
const ENDED = 'ended'
const LONG_MS = 24 * 3_600_000
const PAUSE_MS = 500
const SHIP_MS = 3_600_000

/** A copy of all files of a server, while it works on. It counts once the log that makes it whole is there, too. */
export function defineCopyJob(
  context: LogContext & {
    shipping: Shipping
    /** One pass at a time over each server. */
    pass(archive_id: string, signal: AbortSignal, options?: { force?: boolean }): Promise<void>
    prune(database_id: string, signal: AbortSignal): Promise<void>
  },
): JobDefinition<CopyPayload, object> {
  const { repository, objects, databases, shipping, clock } = context
  const emit = tellOf(context)
  const rowsOf = ({ archive_id, copy_id }: CopyPayload): { archive: ArchiveRow; copy?: CopyRow } => {
    const archive = repository.find(archive_id)
    const is_of_its_data = databases.find(archive?.database_id ?? '')?.volume_id === archive?.volume_id
    if (archive?.status !== 'active' || !is_of_its_data)
      throw new Fatal(ENDED, 'The log of the database is no longer archived where the copy belongs to.')
    const copy = repository.findCopy(copy_id)
    return { archive, ...(copy ? { copy } : {}) }
  }
  const serverOf = async (archive: ArchiveRow, signal: AbortSignal) => {
    const instance = await databases.answering(archive.database_id, signal)
    if (!instance?.engine.point_in_time)
      throw new Fatal('not_running', 'The database does not run, so that it cannot be copied.')
    return { instance, log: instance.engine.point_in_time }
  }
  return defineJob<CopyPayload, object>({
    kind: COPY_KIND,
    initial: () => ({}),
    classify,
    steps: [
      {
        name: 'copy',
        pool: 'backup',
        timeout_ms: LONG_MS,
        async run({ payload, signal, leavePlace }) {
          const { archive, copy } = rowsOf(payload)
          context.requireRoom(archive.project_id)
          const { instance, log } = await serverOf(archive, signal)
          const object_key = objects.copyKey(archive, payload.copy_id)
          if (!copy)
            repository.insertCopy({
              id: payload.copy_id,
              archive_id: archive.id,
              status: 'copying',
              object_key,
              first_piece: log.next(await shipping.cut(instance, signal)),
              ready_at: null,
              size_bytes: null,
              original_bytes: null,
              sha256: null,
              created_at: clock.iso(),
            })
          const bytes = databases.output(instance, log.copy(instance.credentials), signal)
          const written = await context.streaming({ leavePlace }, archive.project_id, (passing) =>
            objects.write(archive, object_key, passing(bytes), signal),
          )
          const { at } = await shipping.lookAt(instance, signal)
          repository.updateCopy(payload.copy_id, { ...written, ready_at: after(at) })
        },
        async undo({ payload }) {
          const archive = repository.find(payload.archive_id)
          if (!archive) return
          await objects.remove(archive, [objects.copyKey(archive, payload.copy_id)])
          repository.updateCopy(payload.copy_id, { status: 'failed', ready_at: null })
        },
      },
      {
        name: 'log',
        timeout_ms: SHIP_MS,
        async run({ payload, signal }) {
          const { ready_at } = rowsOf(payload).copy ?? {}
          if (!ready_at) throw new Error('The copy has no row.')
          // After a crash it comes back first: a copy that is given up is made anew a quarter of an
          // hour later.
          await serverOf(rowsOf(payload).archive, signal)
          await context.pass(payload.archive_id, signal, { force: true })
          while ((rowsOf(payload).archive.complete_until ?? '') < ready_at) {
            await wait(PAUSE_MS, undefined, { signal })
            await context.pass(payload.archive_id, signal)
          }
          context.db.tx(() => {
            repository.updateCopy(payload.copy_id, { status: 'ready' })
            repository.updateArchive(payload.archive_id, { error: null })
            emit(rowsOf(payload).archive, 'archive_copied', { copy_id: payload.copy_id, ready_at })
          })
        },
      },
      {
        name: 'prune',
        irrevocable: true,
        run: ({ payload, signal }) => context.prune(rowsOf(payload).archive.database_id, signal),
      },
    ],
    onEnd({ payload }, outcome) {
      const { archive_id } = JSON.parse(payload) as CopyPayload
      const archive = repository.find(archive_id)
      if (!outcome.failure || outcome.status === 'succeeded') return
      // One that ended meanwhile needs no copy.
      if (archive?.status !== 'active' || outcome.failure.code === ENDED) return
      const message = [outcome.failure.message, outcome.failure.hint].filter(Boolean).join(' ')
      repository.updateArchive(archive_id, { error: message })
      emit(archive, 'archive_failing', { message, waiting_bytes: archive.waiting_bytes })
    },
  })
}

/** The margin of a look, given back: the copy was whole before the server was asked for its time. */
const after = (at: string) => new Date(Date.parse(at) + 1000).toISOString()
