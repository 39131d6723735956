import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { CronJobRow, CronRepository } from './repository.ts'
import type { Scheduler } from './scheduler.ts'
import { faultOf, plainExpression } from './slots.ts'

/** A job as `portreeve.json` or `app.json` declares it. */
export interface DeclaredCronJob {
  schedule: string
  command: string
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
  timezone: 'UTC',
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

/** Keeps the jobs that files of a repository declare the same as those of what is live. */
export function declaredCronJobs(parts: DeclaredParts) {
  const { db, clock, events, repository, scheduler, cancelRuns, ports } = parts
  const keyOf = (expression: string, command: string) => JSON.stringify([expression, command])

  /** Makes what is declared and new, removes what no longer is; the rest keeps its history and its pause. */
  const sync = (app_id: string): void => {
    const app = ports.app(app_id)
    const declared = app && ports.declared(app_id)
    if (!app || !declared) return
    const existing = new Map(
      repository
        .ofApp(app_id)
        .filter(({ source }) => source === 'repository')
        .map((row) => [keyOf(row.expression, JSON.parse(row.command!) as string), row]),
    )
    const tell = (type: string, payload: Record<string, unknown>) =>
      events.append({ type, project_id: app.project_id, app_id, payload: { app_id, ...payload } })
    db.tx(() => {
      const named = new Set<string>()
      for (const { schedule, command } of declared) {
        const expression = plainExpression(schedule)
        const key = keyOf(expression, command)
        if (named.has(key)) continue
        named.add(key)
        if (existing.has(key)) continue
        const fault = faultOf(expression, 'UTC', clock.now())
        if (fault) {
          tell('cron_job.refused', { schedule, command, error: `The schedule ${fault}` })
          continue
        }
        const at = clock.iso()
        const row: CronJobRow = {
          ...FROM_FILE,
          id: newId('cron'),
          app_id,
          project_id: app.project_id,
          name: command.slice(0, 100),
          expression,
          command: JSON.stringify(command),
          next_run_at: scheduler.slotAfter({ expression, timezone: 'UTC' }, clock.now()),
          created_at: at,
          updated_at: at,
        }
        repository.insert(row)
        tell('cron_job.created', { cron_job_id: row.id, name: row.name })
      }
      for (const [key, row] of existing) {
        if (named.has(key)) continue
        cancelRuns(row)
        repository.delete(row.id)
        tell('cron_job.deleted', { cron_job_id: row.id, name: row.name })
      }
      db.afterCommit(scheduler.arm)
    })
  }
  return {
    sync,
    /** After a start: a process that ended between a deployment and this has left jobs of another release. */
    syncAll: () => repository.appsWithJobs().forEach(sync),
  }
}
