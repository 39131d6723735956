import { own } from '#server/kernel/own'
import { type Actor, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import { forgetAll } from '#server/kernel/forget'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { limits, MASK, paged, type Paging } from '#server/kernel/schemas'
import type { Wanted } from '#server/kernel/page'
import { requireSamePlace } from '#server/kernel/same-place'
import type { Base } from '#server/platform/base'
import { createCronCopies } from './copies.ts'
import { declaredCronJobs, type DeclaredCronJob } from './declared.ts'
import { type ExecutionPorts, openRequest, requestContext } from './execute.ts'
import { type CronJobRow, createCronRepository } from './repository.ts'
import { runJob } from './run-job.ts'
import { createScheduler } from './scheduler.ts'
import type { CronJob, CronJobChange, CronRun, HttpCall, NewCronJob, RunStatus } from './schema.ts'
import { faultOf } from './slots.ts'
import { runView, viewOf } from './view.ts'

/** What cron jobs need of other domains; handed in at composition. */
export interface CronPorts extends ExecutionPorts {
  app(id: string): { id: string; project_id: string; status: string } | undefined
  /** Jobs that the files of what is live declare; undefined when nothing is live. */
  declared(app_id: string): readonly DeclaredCronJob[] | undefined
  /** Throws when this server may not connect to an address. */
  checkUrl(url: string): void
}
export interface CronOptions extends Pick<Base, 'db' | 'clock' | 'events' | 'jobs' | 'secrets' | 'log'> {
  audit: AuditTrail
  ports: CronPorts
}
const MOST_JOBS = 100
const RUNS_KEPT = 100
const originOf = (url: string) => new URL(url).origin
const INACTIVE = new Set(['stopped', 'deleting'])

/** Commands and calls on a schedule. */
export function createCron({ db, clock, events, jobs, secrets, log, audit, ports }: CronOptions) {
  const repository = createCronRepository(db)
  const scheduler = createScheduler({
    db,
    clock,
    events,
    jobs,
    log,
    repository,
    isActive: (app_id) => !INACTIVE.has(ports.app(app_id)?.status ?? 'deleting'),
  })
  const get = (id: string): CronJobRow => orThrow(repository.find(id), () => notFound('cron_job'))
  const view = (row: CronJobRow): CronJob =>
    viewOf(row, row.request === null ? {} : openRequest(secrets, row), repository.lastRun(row.id))
  const audited = ({ name, expression, timezone, command, url, overlap, enabled }: CronJobRow) => ({
    name,
    expression,
    timezone,
    command,
    url,
    overlap,
    enabled: enabled === 1,
  })
  const finish = (
    actor: Actor,
    action: 'create' | 'update' | 'delete',
    before: CronJobRow | null,
    after: CronJobRow | null,
  ) => {
    const row = (after ?? before)!
    events.append({
      type: `cron_job.${action}d`,
      project_id: row.project_id,
      app_id: row.app_id,
      actor_id: actor.user_id || null,
      payload: { app_id: row.app_id, cron_job_id: row.id, name: row.name },
    })
    audit.record(actor, {
      action: `cron_job.${action}`,
      resource_type: 'cron_job',
      resource_id: row.id,
      project_id: row.project_id,
      before: before && audited(before),
      after: after && audited(after),
    })
    db.afterCommit(scheduler.arm)
  }
  const requireExpression = ({ expression, timezone }: Pick<CronJobRow, 'expression' | 'timezone'>) => {
    const fault = faultOf(expression, timezone, clock.now())
    if (fault) throw invalid('expression', fault)
  }
  /** Columns of an HTTP call; masked headers and a body that is left out stay, for the server they were given for. */
  const callColumns = (id: string, http: HttpCall, before?: CronJobRow) => {
    ports.checkUrl(http.url)
    const old = before ? openRequest(secrets, before) : {}
    const kept = <T>(path: string, value: T, instead?: string): T => {
      requireSamePlace(`http.${path}`, before?.url ? originOf(before.url) : null, originOf(http.url), instead)
      return value
    }
    const headers = Object.fromEntries(
      Object.entries(http.headers ?? {}).map(([name, value]) => {
        if (value !== MASK) return [name, value]
        const stored = own(old.headers, name)
        if (stored === undefined)
          throw invalid(`http.headers.${name}`, 'is the mask, and there is no header for it to keep.')
        return [name, kept(`headers.${name}`, stored)]
      }),
    )
    const body =
      http.body === undefined && old.body ? kept('body', old.body, ', or as null') : (http.body ?? null)
    const is_empty = Object.keys(headers).length === 0 && !body
    return {
      command: null,
      url: http.url,
      method: http.method,
      request: is_empty ? null : secrets.seal(JSON.stringify({ headers, body }), requestContext(id)),
    }
  }
  const commandColumns = (command: string | string[]) => ({
    command: JSON.stringify(command),
    url: null,
    method: null,
    request: null,
  })
  const cancelRuns = (row: CronJobRow) => {
    for (const run of repository.openRuns(row.id)) if (run.job_id) jobs.cancel(run.job_id)
  }
  const nextOf = (row: CronJobRow) => (row.enabled === 1 ? scheduler.slotAfter(row, clock.now()) : null)
  jobs.define(runJob({ repository, clock, events, secrets, log, ports }))
  const declared = declaredCronJobs({ db, clock, repository, scheduler, events, cancelRuns, ports })
  events.subscribe((event) => {
    if (event.type !== 'deployment.finished' || !event.app_id) return
    try {
      declared.sync(event.app_id)
    } catch (error) {
      log.error('Cron jobs of a repository could not be taken over', { app: event.app_id, error })
    }
  })

  const service = {
    tick: scheduler.tick,
    start() {
      declared.syncAll()
      scheduler.start()
    },
    stop: scheduler.stop,
    list(actor: Actor, filter: { project_id?: Wanted; app_id?: Wanted }, paging: Paging) {
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ rows: rows.map(view), total }, paging)
    },
    add: (actor: Actor, { app_id, command, http, enabled, name, ...rest }: NewCronJob): CronJob =>
      db.tx(() => {
        const app = orThrow(ports.app(app_id), () => notFound('app'))
        if ((command === undefined) === (http === undefined))
          throw invalid('command', 'or http must be given, and only one of the two.')
        requireExpression(rest)
        if (repository.ofApp(app_id).length >= MOST_JOBS)
          throw conflict(`An app may have ${MOST_JOBS} cron jobs at most. Delete some, or join commands.`)
        const at = clock.iso()
        const id = newId('cron')
        const row: CronJobRow = {
          id,
          project_id: app.project_id,
          app_id,
          name: name ?? (http ? http.url : [command!].flat().join(' ')).slice(0, 100),
          ...rest,
          ...(http ? callColumns(id, http) : commandColumns(command!)),
          enabled: Number(enabled),
          source: 'api',
          next_run_at: null,
          created_at: at,
          updated_at: at,
        }
        row.next_run_at = nextOf(row)
        repository.insert(row)
        declared.giveWay(row)
        finish(actor, 'create', null, row)
        return view(row)
      }),
    change: (actor: Actor, id: string, { command, http, enabled, ...rest }: CronJobChange): CronJob =>
      db.tx(() => {
        const before = get(id)
        if (before.source === 'repository' && (command ?? http ?? Object.keys(rest)[0]) !== undefined)
          throw conflict(
            'This job is declared in the repository. Change it there and deploy; here it can be paused and run.',
          )
        if (command !== undefined && http !== undefined)
          throw invalid('http', 'cannot be given together with command.')
        const row: CronJobRow = {
          ...before,
          ...rest,
          ...(http ? callColumns(id, http, before) : {}),
          ...(command === undefined ? {} : commandColumns(command)),
          enabled: Number(enabled ?? before.enabled),
          updated_at: clock.iso(),
        }
        requireExpression(row)
        row.next_run_at = nextOf(row)
        repository.update(row)
        finish(actor, 'update', before, row)
        return view(row)
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        if (row.source === 'repository')
          throw conflict('This job is declared in the repository. Remove it there and deploy, or pause it.')
        cancelRuns(row)
        repository.delete(id)
        finish(actor, 'delete', row, null)
      }),
    runNow: (actor: Actor, id: string): CronRun =>
      db.tx(() => {
        const row = get(id)
        if (INACTIVE.has(ports.app(row.app_id)?.status ?? 'deleting'))
          throw conflict('The app is stopped, so its jobs do not run. Start it first.')
        const run_id = scheduler.runNow(actor, row)
        audit.record(actor, {
          action: 'cron_job.run',
          resource_type: 'cron_job',
          resource_id: id,
          project_id: row.project_id,
          after: { run_id },
        })
        return runView(repository.run(run_id)!)
      }),
    runs(id: string, query: Paging & { status?: Wanted<RunStatus> }) {
      const { rows, total } = repository.runs(get(id).id, query.status, ...limits(query))
      return paged({ rows: rows.map(runView), total }, query)
    },
    idsOf: (app_id: string): string[] => repository.ofApp(app_id).map(({ id }) => id),
    /** Ends what runs of an app that is going. */
    release(app_id: string) {
      for (const run of repository.openRunsOfApp(app_id)) if (run.job_id) jobs.cancel(run.job_id)
    },
    /** Forgets some of the runs of an app that is going; returns how many. */
    forgetHistory: repository.forgetRuns,
    /** Forgets runs of the past; returns how many. */
    async prune(before: string): Promise<number> {
      let count = 0
      for (const id of repository.ids())
        count += (await forgetAll(() => repository.pruneRuns(id, RUNS_KEPT, before))) ?? 0
      return count
    },
  }
  return {
    ...service,
    copies: createCronCopies({
      ofApp: repository.ofApp,
      request: (row) => (row.request === null ? {} : openRequest(secrets, row)),
      add: service.add,
      change: service.change,
    }),
  }
}
export type CronJobs = ReturnType<typeof createCron>
