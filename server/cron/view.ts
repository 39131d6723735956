import { MASK } from '#server/kernel/schemas'
import type { CronJobRow, CronRunRow } from './repository.ts'
import type { CronJob, CronRun, HttpCall } from './schema.ts'

/** A run as answers show it. */
export const runView = ({ truncated, project_id: _project, job_id: _job, ...run }: CronRunRow): CronRun => ({
  ...run,
  truncated: truncated === 1,
})

/** A job as answers show it: names of headers, and no values. */
export function viewOf(
  row: CronJobRow,
  { headers = {}, body }: Pick<HttpCall, 'headers' | 'body'>,
  last: CronRunRow | undefined,
): CronJob {
  const { url, method, request: _sealed, command, enabled, ...rest } = row
  return {
    ...rest,
    command: command === null ? null : (JSON.parse(command) as string | string[]),
    http:
      url === null
        ? null
        : {
            url,
            method: method as NonNullable<CronJob['http']>['method'],
            headers: Object.fromEntries(Object.keys(headers).map((name) => [name, MASK])),
            has_body: Boolean(body),
          },
    enabled: enabled === 1,
    last_run: last
      ? { id: last.id, status: last.status, created_at: last.created_at, finished_at: last.finished_at }
      : null,
  }
}
