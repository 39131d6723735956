import type { Jobs } from '#server/kernel/jobs/jobs'
import { RESTORE_KIND } from './restore-job.ts'
import { VERIFY_KIND } from './verify-job.ts'

const MOST_JOBS = 10_000

/** Whether a restore or a trial of a backup is under way, which reads its archive until it has ended. */
export const isInUse = (jobs: Pick<Jobs, 'page'>, backup_id: string): boolean =>
  jobs
    .page(
      undefined,
      { kind: [RESTORE_KIND, VERIFY_KIND], status: ['queued', 'running', 'undoing'] },
      MOST_JOBS,
      0,
    )
    .rows.some(({ payload }) => (JSON.parse(payload) as { backup_id: string }).backup_id === backup_id)
