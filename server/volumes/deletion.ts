import { defineJob, Fatal, type JobDefinition, type Verdict } from '#server/kernel/jobs/definition'
import { ApiError } from '#server/kernel/errors'
import { failureOf } from '#server/kernel/failures'
import { EngineError } from '#server/platform/engine/engine'

export const DELETE_KIND = 'volume.delete'
export interface VolumeDeletion {
  volume_id: string
  backup_id: string
}
export interface DeletionPorts {
  /** Takes the final backup and answers once it is whole; throws when it cannot be taken. */
  take(backup_id: string, signal: AbortSignal): Promise<void>
  /** Ends a final backup that was never begun. */
  drop(backup_id: string, error: string): void
  /** Removes the data, then the row. */
  destroy(volume_id: string): Promise<void>
  /** Nothing was removed, and the volume is what it was. */
  keep(volume_id: string, error: string): void
}

function classify(error: unknown): Verdict {
  const { message } = error as Error
  const verdict = { message, hint: null, log: [] }
  if (error instanceof Fatal) return { ...verdict, kind: 'user', code: error.code, hint: error.hint }
  if (error instanceof ApiError) return { ...verdict, kind: 'user', code: failureOf(error) }
  if (error instanceof EngineError)
    return error.code === 'unavailable'
      ? { ...verdict, kind: 'wait', code: 'engine_unavailable' }
      : { ...verdict, kind: 'system', code: error.code }
  return { ...verdict, kind: 'system', code: 'internal', message: 'Portreeve met a fault of its own.' }
}

/** Nothing of a volume is removed before its last copy is whole. */
export const deletionJob = ({
  take,
  drop,
  destroy,
  keep,
}: DeletionPorts): JobDefinition<VolumeDeletion, object> =>
  defineJob<VolumeDeletion, object>({
    kind: DELETE_KIND,
    initial: () => ({}),
    classify,
    steps: [
      {
        name: 'backup',
        timeout_ms: 86_400_000,
        run: ({ payload, signal }) => take(payload.backup_id, signal),
      },
      { name: 'remove', run: ({ payload }) => destroy(payload.volume_id) },
    ],
    onEnd(job, outcome) {
      if (outcome.status === 'succeeded') return
      const { message = 'The deletion was cancelled.', hint } = outcome.failure ?? {}
      drop((JSON.parse(job.payload) as VolumeDeletion).backup_id, message)
      keep(job.subject, [message, hint].filter(Boolean).join(' '))
    },
  })
