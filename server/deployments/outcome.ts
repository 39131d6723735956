import type { Db } from '#server/kernel/db'
import type { Outcome } from '#server/kernel/jobs/definition'
import type { OnDeployEnd } from './job.ts'
import type { Queue } from './queue.ts'
import type { DeploymentRow } from './repository.ts'
import type { Status } from './status.ts'
import { pruneArchives } from './upload.ts'
import { summaryOf } from './view.ts'
import type { DeployContext } from './work.ts'

/** Logs of one app together: whoever writes its builds decides how much each says, and how often it is deployed. */
const MOST_LOG_BYTES = 128 * 1024 ** 2
const LOGS_LOOKED_AT = 2000

/** What the end of a job makes of its deployment, of the app, and of what served before. */
export function createOutcome(context: DeployContext, status: Status, queue: Queue, db: Db): OnDeployEnd {
  const { apps, deployments: repository, clock, logs } = context
  return (job, outcome, state) => {
    const row = repository.find(job.subject)
    if (!row) return
    logs.append(row.id, 'end', 'system', lastWord(row, outcome, queue.rollsBack(row.app_id)))
    db.afterCommit(() => {
      logs.close(row.id)
      pruneArchives(repository, context.uploads_directory, row.app_id)
      logs.keepNewest(repository.newestIds(row.app_id, LOGS_LOOKED_AT), MOST_LOG_BYTES)
    })
    if (outcome.status === 'succeeded') {
      repository.change(row.id, { finished_at: clock.iso() })
      return void status.emit(status.get(row.id), 'deployment.finished')
    }
    if (row.status === 'superseded') return
    const event = outcome.status === 'failed' ? 'fail' : 'cancel'
    const is_rolled_back = event === 'cancel' && row.status === 'live' && queue.rollsBack(row.app_id)
    // The app is as it was before the rollback, so it follows its branch as it did.
    if (row.trigger === 'rollback' && row.status === 'live' && state.auto_deploy)
      apps.setAutoDeploy(row.app_id, true)
    apps.transition(row.app_id, event, { deployment_id: row.id, error: outcome.failure?.message })
    context.advance(row.id, is_rolled_back ? 'replace' : event, {
      failure: outcome.failure && JSON.stringify(outcome.failure),
      finished_at: clock.iso(),
    })
    const back = status.serving(row.app_id)
    if (back?.status === 'replaced') context.advance(back.id, 'restore')
  }
}

/** The line that ends the log of a deployment. */
function lastWord(row: DeploymentRow, outcome: Outcome, rolls_back: boolean): string {
  if (outcome.status === 'succeeded') return 'The deployment is live.'
  if (row.status === 'superseded')
    return summaryOf(row).error?.message ?? 'A newer deployment took the place of this one.'
  if (outcome.status === 'cancelled' && row.status === 'live' && rolls_back)
    return 'A rollback was asked for while the release was watched.'
  return outcome.failure
    ? [outcome.failure.message, outcome.failure.hint].filter(Boolean).join(' ')
    : 'The deployment was cancelled.'
}
