import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Failure } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { createPrecedence } from './precedence.ts'
import { shareOfRelease } from './release-shares.ts'
import type { DeploymentRequest, DeploymentRow } from './repository.ts'
import type { Trigger } from './schema.ts'
import type { Status } from './status.ts'
import { currentArchive } from './upload.ts'
import type { DeployContext, DeployPayload } from './work.ts'

/** What the queue needs to know of an app. */
export interface QueuedApp {
  id: string
  project_id: string
  branch: string | null
}
export interface QueueParts {
  context: DeployContext
  status: Status
  db: Db
  jobs: Jobs
  audit: AuditTrail
}

/** From a request to a queued row: quota, number, what it replaces, row, job and event in one transaction. */
export function createQueue({ context, status, db, jobs, audit }: QueueParts) {
  const { apps, deployments: repository, releases, clock, soaks } = context
  const precedence = createPrecedence(repository)

  /** Whether a rollback of the app is queued, for which what soaks gives its traffic back. */
  const rollsBack = (app_id: string) =>
    repository.withStatus(app_id, ['queued']).some(({ trigger }) => trigger === 'rollback')
  /** Ends the soak of an app, so that nothing that is to follow waits for it. */
  const endSoak = (app_id: string) => soaks.under_way.get(app_id)?.abort()
  /** Gives the traffic back at once when what is rolled back is still watched: its old instances are there. */
  const endTrial = (app_id: string) => {
    for (const row of repository.unfinished(app_id))
      if (row.status === 'live' && row.job_id) jobs.cancel(row.job_id)
  }

  /**
   * Replaces older queued deployments: only the newest is worth making. Each of them tells which one took its
   * place.
   */
  const supersede = (by: { id: string; app_id: string; number: number; trigger: Trigger }) => {
    for (const row of precedence.replacedBy(by.app_id, by.trigger)) {
      const failure: Failure = {
        code: 'superseded',
        message: `Deployment #${by.number} took the place of this one before it began.`,
        hint: null,
        step: null,
        log: [],
      }
      repository.setStatus(row.id, 'queued', 'superseded')
      repository.change(row.id, { finished_at: clock.iso(), failure: JSON.stringify(failure) })
      if (row.job_id) jobs.cancel(row.job_id)
      status.emit(status.get(row.id), 'deployment.superseded', { superseded_by: by.id })
    }
  }

  /** The row and the job that brings it to an end. */
  const insert = (
    id: string,
    app: QueuedApp,
    trigger: Trigger,
    requested: DeploymentRequest,
    actor: Actor,
  ): void => {
    const number = apps.nextNumber(app.id)
    supersede({ id, app_id: app.id, number, trigger })
    repository.insert({
      id,
      app_id: app.id,
      project_id: app.project_id,
      number,
      trigger,
      request: JSON.stringify(requested),
      branch: requested.branch ?? app.branch,
      created_by: actor.user_id || null,
      created_at: clock.iso(),
    })
    const job_id = jobs.enqueue<DeployPayload>({
      kind: 'deploy',
      lane: `app:${app.id}`,
      subject: id,
      project_id: app.project_id,
      payload: { deployment_id: id, app_id: app.id, project_id: app.project_id },
    })
    repository.change(id, { job_id })
  }

  /** Queues a deployment in the current transaction. */
  const enqueue = (app: QueuedApp, trigger: Trigger, ask: DeploymentRequest, actor: Actor): DeploymentRow => {
    precedence.require(app.id, trigger)
    // What is live was counted when it came; restarting it must work.
    const other = ask.from_release ? releases.find(ask.from_release) : undefined
    if (trigger !== 'restart' && !ask.admitted) apps.requireShare(app.id, other && shareOfRelease(other))
    const id = newId('dep')
    insert(id, app, trigger, ask, actor)
    apps.transition(app.id, 'deploy')
    if (trigger === 'rollback') endTrial(app.id)
    else db.afterCommit(() => endSoak(app.id))
    const row = status.get(id)
    status.emit(row, 'deployment.queued', ask.commit ? { commit: ask.commit } : {})
    audit.record(actor, {
      action: 'deployment.create',
      resource_type: 'deployment',
      resource_id: id,
      project_id: app.project_id,
      after: { app_id: app.id, trigger, ...ask },
    })
    return row
  }

  /** Queues a deployment of what was uploaded last, which has no branches and commits. */
  const enqueueLastUpload = (
    app: QueuedApp,
    trigger: Trigger,
    { branch: _branch, commit: _commit, ...ask }: DeploymentRequest,
    actor: Actor,
  ): DeploymentRow => {
    const last = currentArchive(repository, app.id)
    if (!last)
      throw conflict('Nothing has been uploaded yet. Send a gzipped tar to POST /api/apps/:id/upload.')
    return enqueue(app, trigger, { ...ask, upload: last }, actor)
  }
  const takesUploads = ({ id }: Pick<QueuedApp, 'id'>) => apps.get(id).configuration.source === 'upload'
  return {
    enqueue,
    /** Queues a deployment of the app's source as it is: its branch or image, or what was uploaded last. */
    enqueueSource: (app: QueuedApp, trigger: Trigger, ask: DeploymentRequest, actor: Actor): DeploymentRow =>
      takesUploads(app) ? enqueueLastUpload(app, trigger, ask, actor) : enqueue(app, trigger, ask, actor),
    /** Whether there is anything to deploy: an app for uploads has nothing before the first one. */
    hasSource: (app: Pick<QueuedApp, 'id'>): boolean =>
      !takesUploads(app) || currentArchive(repository, app.id) !== undefined,
    endSoak,
    rollsBack,
  }
}
export type Queue = ReturnType<typeof createQueue>
