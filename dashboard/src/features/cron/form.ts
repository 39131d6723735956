import type { paths } from '@/api/generated/schema.d.ts'
import { readHeaders, textOf } from './headers.ts'
import type { CronJob } from './queries.ts'
import { TIMES } from './words.ts'

/** What creates a cron job; a change has the same fields, all of them optional. */
export type NewCronJob = NonNullable<
  paths['/api/cron-jobs']['post']['requestBody']
>['content']['application/json']
type Text = string | null
type Amount = string | number | null
export interface CronForm {
  app_id: Text
  name: string
  kind: Text
  command: string
  url: string
  method: Text
  headers: string
  body: string
  preset: Text
  expression: string
  timezone: string
  timeout_s: Amount
  overlap: Text
  catch_up: Text
  retries: Amount
}

/** What the form shows for a job, or for one that is about to be made. */
export function formOf(job: CronJob | undefined, app_id: string | undefined): CronForm {
  const http = job?.http
  const expression = job?.expression ?? '0 3 * * *'
  return {
    app_id: job?.app_id ?? app_id ?? null,
    name: job?.name ?? '',
    kind: http ? 'http' : 'command',
    command: Array.isArray(job?.command) ? JSON.stringify(job.command) : (job?.command ?? ''),
    url: http?.url ?? '',
    method: http?.method ?? 'POST',
    headers: textOf(http?.headers ?? {}),
    body: '',
    preset: TIMES.some(({ value }) => value === expression) ? expression : '',
    expression,
    timezone: job?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    timeout_s: job?.timeout_s ?? 600,
    overlap: job?.overlap ?? 'forbid',
    catch_up: job?.catch_up ?? 'none',
    retries: job?.retries ?? 0,
  }
}

/** A line that is a JSON list is a list of arguments, which no shell reads. */
function commandOf(text: string): string | string[] {
  if (!text.trim().startsWith('[')) return text
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) && parsed.every((one) => typeof one === 'string') ? parsed : text
  } catch {
    return text
  }
}

/** What is sent for the form. */
export function bodyOf(form: CronForm): Omit<NewCronJob, 'app_id'> {
  const what =
    form.kind === 'http'
      ? {
          http: {
            url: form.url,
            method: form.method as NonNullable<CronJob['http']>['method'],
            headers: readHeaders(form.headers),
            ...(form.body ? { body: form.body } : {}),
          },
        }
      : { command: commandOf(form.command) }
  return {
    ...what,
    ...(form.name ? { name: form.name } : {}),
    expression: form.preset || form.expression,
    timezone: form.timezone,
    timeout_s: Number(form.timeout_s),
    overlap: form.overlap as CronJob['overlap'],
    catch_up: form.catch_up as CronJob['catch_up'],
    retries: Number(form.retries),
  }
}
