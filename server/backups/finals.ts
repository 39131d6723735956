import type { Clock } from '#server/kernel/clock'
import { notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { backupEvent } from './backup-job.ts'
import { backupMachine } from './machine.ts'
import type { BackupRepository, BackupRow } from './repository.ts'
import type { Backup } from './schema.ts'

const ENDED = new Set(['succeeded', 'failed'])

export interface FinalOptions {
  clock: Clock
  events: Events
  jobs: Jobs
  repository: BackupRepository
  get(id: string): BackupRow
  view(row: BackupRow): Backup
  /** Queues the job of a backup. */
  start(row: BackupRow): void
}

/** Last copies of what is about to be deleted. */
export function createFinals({ clock, events, jobs, repository, get, view, start }: FinalOptions) {
  /** Resolves once a backup has ended; rejects when the signal aborts. */
  const whenEnded = (id: string, signal: AbortSignal): Promise<Backup> =>
    new Promise((resolve, reject) => {
      const settle = () => {
        const row = repository.find(id)
        if (row && !ENDED.has(row.status)) return
        release()
        if (row) resolve(view(row))
        else reject(notFound('backup'))
      }
      const stop = () => {
        release()
        reject(signal.reason as Error)
      }
      const unsubscribe = events.subscribe(({ type }) => {
        if (type.startsWith('backup.')) settle()
      })
      const release = () => {
        unsubscribe()
        signal.removeEventListener('abort', stop)
      }
      signal.addEventListener('abort', stop, { once: true })
      settle()
    })

  return {
    /**
     * Ends a last copy that was planned and never begun: one that stayed in the queue for ever would keep its target
     * from every scheduled backup to come.
     */
    dropFinal(id: string, error: string): void {
      const row = repository.find(id)
      if (row?.status !== 'queued' || jobs.findBySubject(id)) return
      repository.setStatus(id, 'queued', backupMachine.next('queued', 'fail'))
      repository.update(id, { error, finished_at: clock.iso() })
      events.append(backupEvent(row, 'failed', { error }))
    },
    /** Takes the last copy and resolves once it is whole. Idempotent; throws when it could not be made. */
    async takeFinal(id: string, signal: AbortSignal): Promise<Backup> {
      if (get(id).status === 'queued' && !jobs.findBySubject(id)) start(get(id))
      const ended = await whenEnded(id, signal)
      if (ended.status === 'succeeded') return ended
      throw new Fatal(
        'final_backup_failed',
        `The final backup failed: ${ended.error ?? 'no reason is known.'}`,
        'Nothing was deleted. Repair the destination and delete again, or delete with skip_backup=true.',
      )
    },
  }
}
