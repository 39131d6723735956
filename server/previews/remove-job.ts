import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from './classify.ts'
import type { PreviewContext } from './context.ts'
import type { PreviewRow } from './repository.ts'
import { until } from './waiting.ts'

export const REMOVE_KIND = 'preview.remove'
export interface RemovePayload {
  preview_id: string
}
interface RemoveState {
  /** Set once nothing of the preview is left but its row. */
  is_empty?: boolean
}

const LIMIT_MS = 3_600_000

/**
 * Takes away the app of a preview with its containers, images and volumes, the copies of databases, and the
 * network. The row goes last; while it is there, a schedule begins the removal anew.
 */
export function removeJob(
  { repository, ports }: PreviewContext,
  onGone: (row: PreviewRow) => void,
): JobDefinition<RemovePayload, RemoveState> {
  return defineJob<RemovePayload, RemoveState>({
    kind: REMOVE_KIND,
    initial: () => ({}),
    classify,
    steps: [
      {
        name: 'app',
        irrevocable: true,
        attempts: 10,
        timeout_ms: LIMIT_MS,
        async run({ payload, signal, skip }) {
          const { runner_id } = repository.find(payload.preview_id) ?? {}
          if (!runner_id) return skip()
          await until(() => {
            // Asked for again where the work on it has ended without being done.
            ports.removeRunner(runner_id)
            return ports.app(runner_id) === undefined
          }, signal)
        },
      },
      {
        name: 'databases',
        irrevocable: true,
        attempts: 10,
        timeout_ms: LIMIT_MS,
        async run({ payload: { preview_id }, signal }) {
          for (const { database_id } of repository.copies(preview_id)) {
            await until(() => {
              const row = ports.database(database_id)
              if (row && row.status !== 'deleting') ports.removeDatabase(database_id)
              return row === undefined
            }, signal)
            repository.deleteCopy(preview_id, database_id)
          }
        },
      },
      {
        name: 'network',
        irrevocable: true,
        attempts: 10,
        async run({ payload, state }) {
          const row = repository.find(payload.preview_id)
          if (row) await ports.removeNetwork(row)
          state.is_empty = true
        },
      },
    ],
    onEnd(job, _outcome, state) {
      const row = repository.find(job.subject)
      if (!row || !state.is_empty) return
      repository.delete(row.id)
      onGone(row)
    },
  })
}
