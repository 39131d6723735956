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
import type { Failure, Outcome } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { type Wanted, wantedValues } from '#server/kernel/page'
import { deployJob } from './job.ts'
import { type DeploymentEventName, deploymentMachine } from './machine.ts'
import { createPrecedence } from './precedence.ts'
import { instancesOfRelease } from './processes.ts'
import type { Release } from './releases.ts'
import { askOf, type DeploymentAsk, type DeploymentRow } from './repository.ts'
import { createRollbackTarget } from './rollback.ts'
import type { DeployRequest, Trigger } from './schema.ts'
import { createRouting, NOTHING } from './routing.ts'
import { createScaler } from './scaler.ts'
import { pruneArchives, receive } from './upload.ts'
import { summaryOf, viewOf } from './view.ts'
import { type DeployPayload, type DeployState, secretsOfApp, targetOf, type Workshop } from './work.ts'

/** What the service asks of the apps domain, beyond what the steps need. */
export interface DeploymentPorts {
  requireEngine(): void
  takeNumber(app_id: string): number
  /** Throws 409 when instances of the project would use more than its quotas, as the app or a release of it is. */
  requireShare(app_id: string, other?: Release['configuration']): void
  /** Tells the app that a deployment was accepted; throws a 409 when its status does not allow one. */
  appDeploys(app_id: string): void
  setAutoDeploy(app_id: string, on: boolean): void
  /** The instances of an app were changed, so that it is to be looked at. */
  scaled(): void
  checkBranch(text: string): void
}
export interface DeploymentOptions {
  shop: Omit<Workshop, 'advance' | 'routing' | 'scaler' | 'soaks'>
  db: Db
  events: Events
  jobs: Jobs
  audit: AuditTrail
  ports: DeploymentPorts
}

export function createDeployments({ shop: parts, db, events, jobs, audit, ports }: DeploymentOptions) {
  const { deployments: repository, releases, clock, logs } = parts

  const get = (id: string): DeploymentRow =>
    repository.find(id) ??
    (() => {
      throw notFound('deployment')
    })()
  const tell = (row: DeploymentRow, type: string, payload: Record<string, unknown> = {}) =>
    events.append({
      type,
      project_id: row.project_id,
      app_id: row.app_id,
      deployment_id: row.id,
      actor_id: row.created_by,
      payload: {
        deployment_id: row.id,
        app_id: row.app_id,
        number: row.number,
        status: row.status,
        trigger: row.trigger,
        ...payload,
      },
    })

  /** The deployment of what serves of an app. */
  const serving = (app_id: string): DeploymentRow | undefined => {
    const { live_deployment_id } = parts.ports.app(app_id)
    return live_deployment_id ? repository.find(live_deployment_id) : undefined
  }
  const advance: Workshop['advance'] = (id, event: DeploymentEventName, change = {}) =>
    db.tx(() => {
      const row = get(id)
      const next = deploymentMachine.next(row.status, event)
      const started = row.status === 'queued' ? { started_at: row.started_at ?? clock.iso() } : {}
      if (next !== row.status) repository.setStatus(id, row.status, next)
      if (Object.keys({ ...started, ...change }).length > 0) repository.change(id, { ...started, ...change })
      if (event === 'go_live') {
        const before = serving(row.app_id)
        if (before && before.id !== id && before.status === 'live') advance(before.id, 'replace')
        parts.ports.setLive(row.app_id, id, repository.find(id)!.release_id)
        parts.ports.wentLive(row.app_id)
        parts.ports.appEvent(row.app_id, 'go_live', { deployment_id: id })
        // Not when it is queued: one that is replaced or fails before it has traffic leaves the app as it
        // was.
        if (row.trigger === 'rollback') ports.setAutoDeploy(row.app_id, false)
      }
      const failure = change.failure ? (JSON.parse(change.failure) as Failure) : undefined
      const type = event === 'restore' ? 'deployment.restored' : `deployment.${next}`
      if (next !== row.status) tell(get(id), type, failure ? { error: failure.message } : {})
    })
  const routing = createRouting({
    ingress: parts.ingress,
    log: parts.log,
    routes: parts.ports.routes,
    others: parts.ports.platformRoutes,
    certificates: parts.ports.certificates,
    routed: parts.ports.routed,
    async current(app_id) {
      const app = parts.ports.app(app_id)
      const release = app.live_release_id ? releases.find(app.live_release_id) : undefined
      if (app.status === 'deleting') return undefined
      return release ? targetOf(await instancesOfRelease(parts.engine, release), release.settings) : NOTHING
    },
  })
  const soaks: Workshop['soaks'] = {
    under_way: new Map(),
    areOver: (app_id) =>
      jobs.findBySubject(app_id)?.status === 'queued' || repository.withStatus(app_id, ['queued']).length > 0,
  }
  const shop: Workshop = {
    ...parts,
    routing,
    advance,
    soaks,
    scaler: {
      settle: (id) => scaler.settle(id),
      isWorking: (id) => scaler.isWorking(id),
      interrupt: (id) => scaler.interrupt(id),
    },
  }
  const scaler = createScaler(shop, ports.scaled)
  const precedence = createPrecedence(repository)
  /** Whether a rollback of the app is queued, for which what soaks gives its traffic back. */
  const rollsBack = (app_id: string) =>
    repository.withStatus(app_id, ['queued']).some(({ trigger }) => trigger === 'rollback')
  /** Ends the soak of an app, so that nothing that is to follow waits for it. */
  const endSoak = (app_id: string) => soaks.under_way.get(app_id)?.abort()
  /** Gives the traffic back at once when what is rolled back is still watched: its old instances are there. */
  const endTrial = (app_id: string) => {
    for (const { status, job_id } of repository.unfinished(app_id))
      if (status === 'live' && job_id) jobs.cancel(job_id)
  }

  jobs.define(
    deployJob(
      shop,
      (job, step, status, failure) => {
        const row = repository.find(job.subject)
        if (row)
          tell(row, 'deployment.step', {
            step,
            step_status: status,
            ...(failure ? { error: failure.message } : {}),
          })
      },
      (job, outcome, state: DeployState) => {
        const row = repository.find(job.subject)
        if (!row) return
        logs.append(row.id, 'end', 'system', lastWord(row, outcome, rollsBack(row.app_id)))
        db.afterCommit(() => {
          logs.close(row.id)
          pruneArchives(repository, shop.uploads_directory, row.app_id)
        })
        if (outcome.status === 'succeeded') {
          repository.change(row.id, { finished_at: clock.iso() })
          return tell(get(row.id), 'deployment.finished')
        }
        if (row.status === 'superseded') return
        const event = outcome.status === 'failed' ? 'fail' : 'cancel'
        const is_rolled_back = event === 'cancel' && row.status === 'live' && rollsBack(row.app_id)
        // The app is as it was before the rollback, so it follows its branch as it did.
        if (row.trigger === 'rollback' && row.status === 'live' && state.auto_deploy)
          ports.setAutoDeploy(row.app_id, true)
        parts.ports.appEvent(row.app_id, event, {
          deployment_id: row.id,
          error: outcome.failure?.message,
        })
        advance(row.id, is_rolled_back ? 'replace' : event, {
          failure: outcome.failure && JSON.stringify(outcome.failure),
          finished_at: clock.iso(),
        })
        const back = serving(row.app_id)
        if (back?.status === 'replaced') advance(back.id, 'restore')
      },
    ),
  )

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
      tell(get(row.id), 'deployment.superseded', { superseded_by: by.id })
    }
  }

  /** Queues a deployment in the current transaction. */
  const enqueue = (
    app: { id: string; project_id: string; branch: string | null },
    trigger: Trigger,
    ask: DeploymentAsk,
    actor: Actor,
  ): DeploymentRow => {
    precedence.require(app.id, trigger)
    // What is live was counted when it came; restarting it must work.
    if (trigger !== 'restart')
      ports.requireShare(
        app.id,
        ask.from_release ? releases.find(ask.from_release)?.configuration : undefined,
      )
    const id = newId('dep')
    const number = ports.takeNumber(app.id)
    supersede({ id, app_id: app.id, number, trigger })
    repository.insert({
      id,
      app_id: app.id,
      project_id: app.project_id,
      number,
      trigger,
      request: JSON.stringify(ask),
      branch: ask.branch ?? app.branch,
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
    ports.appDeploys(app.id)
    if (trigger === 'rollback') endTrial(app.id)
    else db.afterCommit(() => endSoak(app.id))
    const row = get(id)
    tell(row, 'deployment.queued', ask.commit ? { commit: ask.commit } : {})
    audit.record(actor, {
      action: 'deployment.create',
      resource_type: 'deployment',
      resource_id: id,
      project_id: app.project_id,
      after: { app_id: app.id, trigger, ...ask },
    })
    return row
  }

  const view = (row: DeploymentRow) => viewOf(row, row.job_id ? jobs.steps(row.job_id) : [])
  const appRow = (app_id: string) => {
    const app = parts.ports.app(app_id)
    return { id: app.id, project_id: app.project_id, branch: app.configuration.branch, app }
  }

  const rollbackTarget = createRollbackTarget(repository, releases)
  const requireImage = (release: Release) => {
    if (!release.image_present)
      throw conflict('The image of that release has been removed. Deploy its commit instead.')
  }

  return {
    shop,
    enqueue,
    view,
    isDeploying: (app_id: string) => repository.unfinished(app_id).length > 0,
    /** Whether a deployment is queued or under way that has no traffic yet. */
    isMaking: (app_id: string) => repository.unfinished(app_id).some(({ status }) => status !== 'live'),
    /** Ends the soak of an app that is to be stopped, so that the stop need not wait for it. */
    endSoak,
    latest: (app_id: string) => repository.latest(app_id) ?? null,
    projectOf: repository.projectOf,
    /** What was detected for what a deployment runs, which a rollback or a restart took from another one. */
    planOf(id: string): BuildPlan | undefined {
      const row = repository.find(id)
      const { from_deployment } = row ? askOf(row) : {}
      if (from_deployment) return this.planOf(from_deployment)
      return row?.plan ? (JSON.parse(row.plan) as BuildPlan) : undefined
    },
    /** Values that the log of a deployment must not show; none once its app is gone. */
    secretsOf(id: string): string[] {
      const row = repository.find(id)
      return row && parts.ports.projectOf(row.app_id) ? secretsOfApp(parts, row.app_id) : []
    },
    list(actor: Actor, filter: { app_id?: Wanted; status?: Wanted; trigger?: Wanted }, paging: Paging) {
      const [app_id, ...others] = wantedValues(filter.app_id) ?? []
      if (app_id !== undefined && others.length === 0 && !filter.status && !filter.trigger) {
        const project_id = parts.ports.projectOf(app_id)
        if (!project_id || !projectRole(actor, project_id)) return paged({ rows: [], total: 0 }, paging)
        const { rows, total } = repository.history(app_id, ...limits(paging))
        return paged({ rows: rows.map(summaryOf), total }, paging)
      }
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ rows: rows.map(summaryOf), total }, paging)
    },
    get: (id: string) => view(get(id)),
    deploy: (actor: Actor, app_id: string, body: DeployRequest) => {
      if (body.branch !== undefined) ports.checkBranch(body.branch)
      ports.requireEngine()
      return db.tx(() => {
        const { app, ...row } = appRow(app_id)
        if (app.configuration.source === 'upload') return view(redeployUpload(actor, row))
        if ((body.branch || body.commit) && app.configuration.git_url === null)
          throw invalid(
            body.branch ? 'branch' : 'commit',
            `cannot be given: the source of this app is ${app.configuration.source}.`,
          )
        return view(enqueue(row, actor.method === 'api_key' ? 'api' : 'manual', body, actor))
      })
    },
    rollback: (actor: Actor, app_id: string, deployment_id: string | undefined) => {
      ports.requireEngine()
      return db.tx(() => {
        const { app, ...row } = appRow(app_id)
        // What the caller saw when they asked: a deployment under way does not move the target.
        const release = rollbackTarget(app, deployment_id)
        requireImage(release)
        return view(
          enqueue(
            row,
            'rollback',
            { from_release: release.id, from_deployment: release.deployment_id },
            actor,
          ),
        )
      })
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
    /**
     * Queues a restart of an app whose image is gone, which makes it again; nothing when a deployment waits
     * already, which brings one.
     */
    remake(app_id: string): void {
      const { app: _app, ...row } = appRow(app_id)
      if (repository.withStatus(app_id, ['queued']).length > 0) return
      db.tx(() => enqueue(row, 'restart', {}, PLATFORM))
    },
    /** Whether what is live of an app has this text in one of its variables. */
    holds(app_id: string, text: string): boolean {
      const { live_release_id } = parts.ports.app(app_id)
      return (
        live_release_id !== null &&
        releases.exists(live_release_id) &&
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
    bringHome(app_id: string): boolean {
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
      await receive(shop.uploads_directory, name, stream, content_length)
      try {
        const queued = db.tx(() => view(enqueue(row, 'manual', { upload: name }, actor)))
        pruneArchives(repository, shop.uploads_directory, app_id)
        return queued
      } catch (error) {
        rmSync(join(shop.uploads_directory, name), { force: true })
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
    log: (id: string, query: { after?: number; tail?: number }) =>
      query.after !== undefined
        ? logs.after(id, query.after, query.tail ?? 10_000)
        : logs.tail(id, query.tail ?? 10_000),
  }

  function redeployUpload(
    actor: Actor,
    row: { id: string; project_id: string; branch: string | null },
  ): DeploymentRow {
    const last = repository
      .history(row.id, 100, 0)
      .rows.map((found) => askOf(found).upload)
      .find(Boolean)
    if (!last)
      throw conflict('Nothing has been uploaded yet. Send a gzipped tar to POST /api/apps/:id/upload.')
    return enqueue(row, actor.method === 'api_key' ? 'api' : 'manual', { upload: last }, actor)
  }
}
export type Deployments = ReturnType<typeof createDeployments>

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
