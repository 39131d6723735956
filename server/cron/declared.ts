import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { CronJobRow, CronRepository } from './repository.ts'
import type { Scheduler } from './scheduler.ts'
import { faultOf, plainExpression } from './slots.ts'

/** A job as `portreeve.json`, `portreeve.yaml` or `app.json` declares it. */
export interface DeclaredCronJob {
  schedule: string
  command: string
  name?: string
  /** UTC when absent. */
  timezone?: string
}
export interface DeclaredParts {
  db: Db
  clock: Clock
  events: Events
  repository: CronRepository
  scheduler: Scheduler
  cancelRuns(row: CronJobRow): void
  ports: {
    app(id: string): { id: string; project_id: string } | undefined
    declared(app_id: string): readonly DeclaredCronJob[] | undefined
  }
}
const FROM_FILE = {
  url: null,
  method: null,
  request: null,
  timeout_s: 3600,
  overlap: 'forbid',
  catch_up: 'none',
  retries: 0,
  retry_delay_s: 10,
  enabled: 1,
  source: 'repository',
} as const

type Alike = Pick<CronJobRow, 'name' | 'command' | 'expression'>
const usualName = (command: string): string => command.slice(0, 100)
/** Whether a job of the API is one that a file declares: by the name that it gives, or by what runs when. */
const isSame = (made: Alike, file: Alike): boolean =>
  (made.command === file.command && made.expression === file.expression) ||
  (made.name === file.name && file.name !== usualName(JSON.parse(file.command!) as string))

/** Keeps the jobs that files of a repository declare the same as those of what is live. */
export function declaredCronJobs(parts: DeclaredParts) {
  const { db, clock, events, repository, scheduler, cancelRuns, ports } = parts
  const keyOf = (expression: string, command: string, timezone: string) =>
    JSON.stringify([expression, command, timezone])
  const emit = (
    { project_id, app_id }: Pick<CronJobRow, 'project_id' | 'app_id'>,
    type: string,
    payload: Record<string, unknown>,
  ) => events.append({ type, project_id, app_id, payload: { app_id, ...payload } })
  const remove = (row: CronJobRow): void => {
    cancelRuns(row)
    repository.delete(row.id)
    emit(row, 'cron_job.deleted', { cron_job_id: row.id, name: row.name })
  }

  /** Makes what is declared and new, removes what no longer is; the rest keeps its history and its pause. */
  const sync = (app_id: string): void => {
    const app = ports.app(app_id)
    const declared = app && ports.declared(app_id)
    if (!app || !declared) return
    const rows = repository.ofApp(app_id)
    const made = rows.filter(({ source }) => source === 'api')
    const existing = new Map(
      rows
        .filter(({ source }) => source === 'repository')
        .map((row) => [keyOf(row.expression, JSON.parse(row.command!) as string, row.timezone), row]),
    )
    const about = { project_id: app.project_id, app_id }
    db.tx(() => {
      const named = new Set<string>()
      for (const { schedule, command, name = usualName(command), timezone = 'UTC' } of declared) {
        const expression = plainExpression(schedule)
        const key = keyOf(expression, command, timezone)
        const like = { name, expression, command: JSON.stringify(command) }
        // `portreeve apply` has made it of the same file: it would run twice.
        if (named.has(key) || made.some((row) => isSame(row, like))) continue
        named.add(key)
        if (existing.has(key)) continue
        const fault = faultOf(expression, timezone, clock.now())
        if (fault) {
          emit(about, 'cron_job.refused', { schedule, command, error: `The schedule ${fault}` })
          continue
        }
        const at = clock.iso()
        const row: CronJobRow = {
          ...FROM_FILE,
          ...like,
          id: newId('cron'),
          app_id,
          project_id: app.project_id,
          timezone,
          next_run_at: scheduler.slotAfter({ expression, timezone }, clock.now()),
          created_at: at,
          updated_at: at,
        }
        repository.insert(row)
        emit(about, 'cron_job.created', { cron_job_id: row.id, name: row.name })
      }
      for (const [key, row] of existing) if (!named.has(key)) remove(row)
      db.afterCommit(scheduler.arm)
    })
  }
  return {
    sync,
    /** Removes what files declare of a job that is made by the API: one of the two runs. */
    giveWay(made: CronJobRow): void {
      for (const row of repository.ofApp(made.app_id))
        if (row.source === 'repository' && isSame(made, row)) remove(row)
    },
    /** After a start: a process that ended between a deployment and this has left jobs of another release. */
    syncAll: () => repository.appsWithJobs().forEach(sync),
  }
}
