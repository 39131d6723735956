import type { Clock } from '#server/kernel/clock'
import type { Events } from '#server/kernel/events'
import { defineJob, type JobDefinition, type Outcome } from '#server/kernel/jobs/definition'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import type { Archives } from './archives.ts'
import { backupEvent, type BackupPayload } from './backup-job.ts'
import { classify } from './classify.ts'
import type { BackupRepository, BackupRow } from './repository.ts'
import type { Verification } from './schema.ts'
import type { SlowStreams } from './slow-streams.ts'
import type { Contents, Targets } from './target.ts'

export const VERIFY_KIND = 'backup.verify'
interface State extends Contents {
  began?: Mark
}
export interface VerifyJobOptions {
  clock: Clock
  events: Events
  repository: BackupRepository
  archives: Archives
  streaming: SlowStreams
  targets(): Targets
}
const LONG_MS = 24 * 3_600_000
const MOST_COUNTS = 1000

/** A backup counts only once it was restored: checksum, a throw-away instance, and what is in it. */
export function defineVerifyJob(options: VerifyJobOptions): JobDefinition {
  const { clock, events, repository, archives, streaming, targets } = options
  const rowOf = (id: string): BackupRow => {
    const row = repository.find(id)
    if (!row) throw new Error(`The backup ${id} is gone.`)
    return row
  }
  const resultOf = (outcome: Outcome, { began, ...found }: State): Verification => {
    const values = Object.entries(found.counts)
    const succeeded = outcome.status === 'succeeded'
    return {
      status: succeeded ? 'succeeded' : 'failed',
      at: clock.iso(),
      objects: succeeded ? (found.objects ?? values.length) : null,
      rows: succeeded ? (found.rows ?? values.reduce((sum, [, count]) => sum + count, 0)) : null,
      counts: Object.fromEntries(values.slice(0, MOST_COUNTS)),
      duration_ms: began ? sinceMark(clock, began) : null,
      error: succeeded ? null : (outcome.failure?.message ?? 'The trial restore was cancelled.'),
    }
  }
  return defineJob<BackupPayload, State>({
    kind: VERIFY_KIND,
    initial: () => ({ counts: {} }),
    classify,
    steps: [
      {
        name: 'check',
        timeout_ms: LONG_MS,
        async run({ payload, state, signal }) {
          state.began = markNow(clock)
          await archives.check(rowOf(payload.backup_id), signal)
        },
      },
      {
        name: 'restore',
        pool: 'backup',
        timeout_ms: LONG_MS,
        async run({ payload, state, signal, leavePlace }) {
          const row = rowOf(payload.backup_id)
          const target = targets()[row.target]
          if (!target) throw new Error(`A ${row.target} cannot be restored.`)
          const found = await streaming({ leavePlace }, row.project_id, (passing) =>
            target.verify(row, () => passing(archives.read(row, signal)), signal),
          )
          Object.assign(state, found)
        },
      },
    ],
    onEnd(job, outcome, state) {
      const row = repository.find((JSON.parse(job.payload) as BackupPayload).backup_id)
      if (!row) return
      const result = resultOf(outcome, state)
      repository.update(row.id, {
        verification: JSON.stringify(result),
        ...(result.status === 'succeeded' ? { verified_at: result.at } : {}),
      })
      events.append(
        backupEvent(row, result.status === 'succeeded' ? 'verified' : 'verification_failed', {
          objects: result.objects,
          rows: result.rows,
          error: result.error,
        }),
      )
    },
  })
}
