import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import type { CronJobRow } from './repository.ts'
import { type CronJob, type CronJobChange, NewCronJob } from './schema.ts'

export interface CronCopyParts {
  ofApp(app_id: string): CronJobRow[]
  /** Headers and body of an HTTP call, in clear. */
  request(row: CronJobRow): { headers?: Record<string, string>; body?: string | null }
  add(actor: Actor, given: NewCronJob): CronJob
  change(actor: Actor, id: string, change: CronJobChange): CronJob
}

/** Cron jobs as backups of apps see them. Those that a repository declares come with its deployment. */
export function createCronCopies({ ofApp, request, add, change }: CronCopyParts) {
  const own = (app_id: string) => ofApp(app_id).filter(({ source }) => source === 'api')
  const copyOf = (row: CronJobRow): Record<string, unknown> => {
    const { name, expression, timezone, timeout_s, overlap, catch_up, retries, retry_delay_s } = row
    const what =
      row.url === null
        ? { command: JSON.parse(row.command!) as unknown }
        : { http: { url: row.url, method: row.method, ...request(row) } }
    return {
      ...{ name, expression, timezone, timeout_s, overlap, catch_up, retries, retry_delay_s },
      ...what,
      enabled: row.enabled === 1,
    }
  }
  /** A copy without a body had none: one that the job got since is not kept. */
  const whole = <T extends Pick<NewCronJob, 'http'>>(columns: T): T =>
    columns.http ? { ...columns, http: { ...columns.http, body: columns.http.body ?? null } } : columns
  return {
    snapshot: (app_id: string): Record<string, unknown>[] => own(app_id).map(copyOf),
    /**
     * Gives an app the jobs that a copy says; one of the same name is made what it was.
     *
     * @param paused whether they wait for somebody to turn them on. Answers what was left out, and why.
     */
    restore(actor: Actor, app_id: string, copies: readonly unknown[], paused: boolean): string[] {
      return copies.flatMap((given) => {
        const requested = {
          ...(given as Record<string, unknown>),
          app_id,
          ...(paused ? { enabled: false } : {}),
        }
        const { success, output, issues } = v.safeParse(NewCronJob, requested)
        if (!success) return [`A cron job in the backup cannot be read: ${issues[0].message}`]
        try {
          const present = own(app_id).find(({ name }) => name === output.name)
          const { app_id: _app, ...columns } = output
          if (!present) add(actor, output)
          else if (JSON.stringify(copyOf(present)) !== JSON.stringify(given))
            change(actor, present.id, whole(columns))
          return []
        } catch (error) {
          if (error instanceof ApiError) return [`Cron job ${output.name}: ${error.message}`]
          throw error
        }
      })
    },
  }
}
