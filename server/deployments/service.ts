import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { BuildPlan } from '#server/builds/plan'
import { type Actor, PLATFORM, projectRole, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { orThrow } from '#server/kernel/or-throw'
import { createPace } from '#server/kernel/pace'
import { type Wanted, wantedValues } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { createComparison } from './compare.ts'
import { createDeployContext } from './context.ts'
import { deployJob } from './job.ts'
import type { LogPage } from './logs.ts'
import { createOutcome } from './outcome.ts'
import { createQueue } from './queue.ts'
import { createRemaking } from './remaking.ts'
import type { Release } from './releases.ts'
import { requestOf, type DeploymentRow } from './repository.ts'
import { createRollbackTarget } from './rollback.ts'
import type { DeployRequest } from './schema.ts'
import { createStatus } from './status.ts'
import { pruneArchives, receive } from './upload.ts'
import { summaryOf, viewOf } from './view.ts'
import { type DeployParts, secretsOfJobs } from './work.ts'

export interface DeploymentOptions {
  parts: DeployParts
  db: Db
  events: Events
  jobs: Jobs
  audit: AuditTrail
  ports: {
    requireEngine(): void
    /** The instances of an app were changed, so that it is to be looked at. */
    scaled(): void
    checkBranch(text: string): void
  }
}

/**
 * Deployments as they are asked for. A request goes downwards: here it is checked, `queue.ts` makes it a row with
 * a job, `job.ts` is the runbook of that job, `status.ts` moves its status and `outcome.ts` ends it.
 */
export function createDeployments({ parts, db, events, jobs, audit, ports }: DeploymentOptions) {
  const { apps, deployments: repository, releases, logs } = parts
  const status = createStatus(parts, db, events)
  const { get } = status
  const context = createDeployContext(parts, { jobs, advance: status.advance, scaled: ports.scaled })
  const queue = createQueue({ context, status, db, jobs, audit })
  const { enqueue } = queue
  jobs.define(
    deployJob(
      context,
      (job, step, step_status, failure) => {
        const row = repository.find(job.subject)
        const error = failure ? { error: failure.message } : {}
        if (row) status.emit(row, 'deployment.step', { step, step_status, ...error })
      },
      createOutcome(context, status, queue, db),
    ),
  )

  const view = (row: DeploymentRow) =>
    viewOf(row, row.job_id ? jobs.steps(row.job_id) : [], repository.lastGood(row) ?? null)
  const appRow = (app_id: string) => {
    const app = apps.get(app_id)
    return { id: app.id, project_id: app.project_id, branch: app.configuration.branch, app }
  }

  const rollbackTarget = createRollbackTarget(repository, releases)
  const requireImage = (release: Release) => {
    if (!release.image_present)
      throw conflict('The image of that release has been removed. Deploy its commit instead.')
  }

  return {
    context,
    enqueue,
    enqueueSource: queue.enqueueSource,
    hasSource: queue.hasSource,
    view,
    isDeploying: (app_id: string) => repository.unfinished(app_id).length > 0,
    /** Whether a deployment is queued or under way that has no traffic yet. */
    isMaking: (app_id: string) => repository.unfinished(app_id).some(({ status }) => status !== 'live'),
    /** Ends the soak of an app that is to be stopped, so that the stop need not wait for it. */
    endSoak: queue.endSoak,
    latest: (app_id: string) => repository.latest(app_id) ?? null,
    projectOf: repository.projectOf,
    /** What was detected for what a deployment runs, which a rollback or a restart took from another one. */
    planOf(id: string): BuildPlan | undefined {
      const row = repository.find(id)
      const { from_deployment } = row ? requestOf(row) : {}
      if (from_deployment) return this.planOf(from_deployment)
      return row?.plan ? (JSON.parse(row.plan) as BuildPlan) : undefined
    },
    /** Values that the log of a deployment must not show; none once its app is gone. */
    secretsOf(id: string): string[] {
      const row = repository.find(id)
      return row && apps.projectOf(row.app_id) ? secretsOfJobs(parts, row.app_id) : []
    },
    list(actor: Actor, filter: { app_id?: Wanted; status?: Wanted; trigger?: Wanted }, paging: Paging) {
      const [app_id, ...others] = wantedValues(filter.app_id) ?? []
      if (app_id !== undefined && others.length === 0 && !filter.status && !filter.trigger) {
        const project_id = apps.projectOf(app_id)
        if (!project_id || !projectRole(actor, project_id)) return paged({ rows: [], total: 0 }, paging)
        const { rows, total } = repository.history(app_id, ...limits(paging))
        return paged({ rows: rows.map(summaryOf), total }, paging)
      }
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ rows: rows.map(summaryOf), total }, paging)
    },
    get: (id: string) => view(get(id)),
    compare: createComparison(parts, get),
    deploy: (actor: Actor, app_id: string, body: DeployRequest) => {
      if (body.branch !== undefined) ports.checkBranch(body.branch)
      ports.requireEngine()
      return db.tx(() => {
        const { app, ...row } = appRow(app_id)
        if ((body.branch || body.commit) && app.configuration.git_url === null)
          throw invalid(
            body.branch ? 'branch' : 'commit',
            `cannot be given: the source of this app is ${app.configuration.source}.`,
          )
        return view(queue.enqueueSource(row, triggerOf(actor), body, actor))
      })
    },
    rollback: async (actor: Actor, app_id: string, deployment_id: string | undefined) => {
      ports.requireEngine()
      const pace = createPace(app_id)
      for (;;) {
        const { app } = appRow(app_id)
        // What the caller saw when they asked: a deployment under way does not move the target.
        const release = await rollbackTarget(app, deployment_id, pace)
        const queued = db.tx(() => {
          const { app: now, ...row } = appRow(app_id)
          // Another release went live while this one was looked for.
          if (now.live_release_id !== app.live_release_id) return undefined
          requireImage(orThrow(releases.find(release.id), () => notFound('release')))
          const of = { from_release: release.id, from_deployment: release.deployment_id }
          return view(enqueue(row, 'rollback', of, actor))
        })
        if (queued) return queued
      }
    },
    /** @param only services of a stack that are made anew; all of the app when it is left out. */
    restart: (actor: Actor, app_id: string, only?: string[]) => {
      ports.requireEngine()
      return db.tx(() => {
        const { app, ...row } = appRow(app_id)
        const live = app.live_release_id ? releases.find(app.live_release_id) : undefined
        if (!live) throw conflict('This app has never been live, so there is nothing to restart. Deploy it.')
        return enqueue(row, 'restart', only ? { services: only } : {}, actor)
      })
    },
    /**
     * Starts an app anew with its variables as they are now, without a build. Answers the deployment that does
     * it; undefined when nothing of the app is to run.
     */
    refresh(app_id: string): string | undefined {
      const { app, ...row } = appRow(app_id)
      const is_meant_to_run = app.status === 'running' || app.status === 'crashed'
      if (!is_meant_to_run || !releases.find(app.live_release_id ?? '')?.image_present) return undefined
      return db.tx(() => enqueue(row, 'restart', { fresh_variables: true }, PLATFORM)).id
    },
    ...createRemaking({ ...parts, db }, (id, ask) => enqueue(appRow(id), 'restart', ask, PLATFORM)),
    /** Whether what is live of an app has this text in one of its variables. */
    holds(app_id: string, text: string): boolean {
      const { live_release_id } = apps.get(app_id)
      return (
        live_release_id !== null &&
        releases.placeOf(live_release_id) !== undefined &&
        Object.values(releases.environment(live_release_id)).some((value) => value.includes(text))
      )
    },
    replaceCredentials: releases.replaceCredentials,
    /** How a deployment ended; undefined while it goes on. */
    ended(id: string): 'succeeded' | 'failed' | undefined {
      const row = repository.find(id)
      if (row && row.finished_at === null) return undefined
      return row?.status === 'live' || row?.status === 'replaced' ? 'succeeded' : 'failed'
    },
    /**
     * Restarts an app without having been asked; once only, so false when the last deployment was such a
     * restart, or no image is there for one.
     */
    relocate(app_id: string): boolean {
      const last = repository.latest(app_id)
      const { app, ...row } = appRow(app_id)
      if (
        (last?.trigger === 'restart' && last.created_by === null) ||
        !releases.find(app.live_release_id ?? '')?.image_present
      )
        return false
      db.tx(() => enqueue(row, 'restart', {}, PLATFORM))
      return true
    },
    /** Takes a gzipped tar of a source folder and deploys it. */
    async upload(actor: Actor, app_id: string, stream: Readable, content_length?: number) {
      ports.requireEngine()
      const { app, ...row } = appRow(app_id)
      if (app.configuration.source !== 'upload')
        throw conflict(
          `The source of this app is ${app.configuration.source}; create one with source "upload" for uploads.`,
        )
      const name = `${newId('dep')}.tar.gz`
      await receive(context.uploads_directory, name, stream, content_length)
      try {
        const queued = db.tx(() => view(enqueue(row, triggerOf(actor), { upload: name }, actor)))
        pruneArchives(repository, context.uploads_directory, app_id)
        return queued
      } catch (error) {
        rmSync(join(context.uploads_directory, name), { force: true })
        throw error
      }
    },
    cancel(actor: Actor, id: string) {
      return db.tx(() => {
        const row = get(id)
        if (!row.job_id || row.finished_at || !jobs.cancel(row.job_id))
          throw conflict(
            `Cannot cancel a deployment that is ${row.finished_at || row.status !== 'live' ? row.status : 'live and past its soak'}.`,
          )
        audit.record(actor, {
          action: 'deployment.cancel',
          resource_type: 'deployment',
          resource_id: id,
          project_id: row.project_id,
        })
        return view(get(id))
      })
    },
    /** Ends every deployment of an app that is being deleted. */
    cancelAll(app_id: string) {
      for (const row of repository.unfinished(app_id)) if (row.job_id) jobs.cancel(row.job_id)
    },
    log: (id: string, query: LogPage) => logs.read(id, query),
  }
}
export type Deployments = ReturnType<typeof createDeployments>

const triggerOf = ({ method }: Actor) => (method === 'api_key' ? 'api' : 'manual')
