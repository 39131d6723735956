import type { Trigger } from '#server/deployments/schema'
import { PLATFORM } from '#server/kernel/access'
import { defineJob, Fatal, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from './classify.ts'
import type { DeployAsk, PreviewContext } from './context.ts'
import { copyName } from './names.ts'
import { until } from './waiting.ts'

export const PREPARE_KIND = 'preview.prepare'
export interface PreparePayload {
  preview_id: string
  trigger: Trigger
  ask: DeployAsk
  /** Whether it gets copies of the app's databases; absent where an earlier release queued it, for yes. */
  databases?: boolean
}
interface PrepareState {
  /** Restores that were begun. */
  restores: string[]
}

const RESTORE_LIMIT_MS = 6 * 3_600_000
const UNDER_WAY = new Set(['queued', 'running', 'undoing'])

/** Brings up volumes, and copies of the databases that the app is linked to; then deploys. */
export function prepareJob(context: PreviewContext): JobDefinition<PreparePayload, PrepareState> {
  const { db, jobs, repository, ports, change, note } = context
  const rowOf = (id: string) => {
    const row = repository.find(id)
    if (!row?.runner_id || row.status === 'removing')
      throw new Fatal('preview_gone', 'The preview is being removed.')
    return { ...row, runner_id: row.runner_id }
  }
  /** Copies that are there; one whose restore failed is gone, and is made anew. */
  const copiesOf = (preview_id: string) =>
    repository.copies(preview_id).filter(({ database_id }) => {
      const is_there = ports.database(database_id) !== undefined
      if (!is_there) repository.deleteCopy(preview_id, database_id)
      return is_there
    })
  return defineJob<PreparePayload, PrepareState>({
    kind: PREPARE_KIND,
    initial: () => ({ restores: [] }),
    classify,
    steps: [
      {
        name: 'mounts',
        async run({ payload: { preview_id } }) {
          const { runner_id, app_id, trusted } = rowOf(preview_id)
          if (ports.hasMounts(app_id) || ports.hasMounts(runner_id))
            await ports.followMounts(runner_id, app_id, { files: trusted === 1 })
        },
      },
      {
        name: 'databases',
        async run({ payload: { preview_id, databases = true }, state, save, skip }) {
          const row = rowOf(preview_id)
          if (!databases) return skip()
          for (const { id, name, key } of ports.linkedDatabases(row.app_id)) {
            if (copiesOf(preview_id).some((copy) => copy.key === key)) continue
            const backup_id = ports.newestBackup(id)
            if (!backup_id)
              throw new Fatal(
                'no_backup',
                `There is no backup of ${name}, so the preview cannot have a copy of it.`,
                'Take a backup of the database, or turn databases off in the settings of previews.',
              )
            db.tx(() => {
              const made = ports.restore(backup_id, copyName(row.name, name), preview_id)
              repository.insertCopy({ preview_id, database_id: made.database_id, source_name: name, key })
              ports.link(made.database_id, row.runner_id, key)
              state.restores.push(made.job_id)
            })
            save()
          }
        },
      },
      {
        name: 'restore',
        timeout_ms: RESTORE_LIMIT_MS,
        async run({ payload: { preview_id }, state, signal }) {
          await until(() => !state.restores.some((id) => UNDER_WAY.has(jobs.find(id)?.status ?? '')), signal)
          const failed = state.restores
            .map((id) => jobs.find(id))
            .find((job) => job && job.status !== 'succeeded')
          if (failed) {
            const reason = (JSON.parse(failed.failure ?? 'null') as { message?: string } | null)?.message
            throw new Fatal('restore_failed', `A database could not be restored. ${reason ?? ''}`.trim())
          }
          await until(
            () =>
              copiesOf(preview_id).every((copy) => ports.database(copy.database_id)?.status === 'running'),
            signal,
          )
        },
      },
      {
        name: 'deploy',
        async run({ payload: { preview_id, trigger, ask } }) {
          ports.deploy(rowOf(preview_id).runner_id, trigger, ask, PLATFORM)
        },
      },
    ],
    onEnd(job, outcome) {
      const row = repository.find(job.subject)
      if (!row || outcome.status !== 'failed' || row.status === 'removing') return
      const error = [outcome.failure?.message, outcome.failure?.hint].filter(Boolean).join(' ')
      if (row.runner_id) ports.failRunner(row.runner_id, error)
      change(row.id, { last_error: error })
      const next = row.status === 'building' ? context.advance(row.id, 'fail') : repository.find(row.id)!
      note(next, 'preview.failed', { error })
    },
  })
}
