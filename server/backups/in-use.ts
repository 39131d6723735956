import type { Jobs } from '#server/kernel/jobs/jobs'
import { own } from '#server/kernel/own'
import { RECOVER_KIND } from './point-in-time/recover-job.ts'
import { RESTORE_KIND } from './restore-job.ts'
import { VERIFY_KIND } from './verify-job.ts'

const MOST_JOBS = 10_000

/** Whether a job of these kinds has not ended that is about something, by a field of what it was asked. */
const isAsked = (jobs: Pick<Jobs, 'page'>, kind: string[], field: string, id: string): boolean =>
  jobs
    .page(undefined, { kind, status: ['queued', 'running', 'undoing'] }, MOST_JOBS, 0)
    .some(({ payload }) => own(JSON.parse(payload) as Record<string, unknown>, field) === id)

/** Whether a restore or a trial of a backup is under way, which reads its archive until it has ended. */
export const isInUse = (jobs: Pick<Jobs, 'page'>, backup_id: string): boolean =>
  isAsked(jobs, [RESTORE_KIND, VERIFY_KIND], 'backup_id', backup_id)

/** The same for the archive of a log, which a database is brought to a moment from. */
export const isRecoveredFrom = (jobs: Pick<Jobs, 'page'>, archive_id: string): boolean =>
  isAsked(jobs, [RECOVER_KIND], 'archive_id', archive_id)
