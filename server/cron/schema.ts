import * as v from 'valibot'
import { pagingEntries, SECRET, several, severalIds, sorting, Timestamp, MASK } from '#server/kernel/schemas'
import { isTimezone, plainExpression } from './slots.ts'

const line = (max: number) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(max),
    v.regex(/^[^\u0000-\u001f\u007f]*$/, 'must be one line without control characters.'),
  )
const Expression = v.pipe(
  v.string(),
  v.maxLength(100),
  v.transform(plainExpression),
  v.description(
    'Minute, hour, day of month, month and day of week; or six fields, the first of which is one second of the minute; or @hourly, @daily, @weekly, @monthly, @yearly.',
  ),
  v.examples(['30 4 * * 1-5']),
)
const Timezone = v.pipe(
  v.string(),
  v.maxLength(64),
  v.check(isTimezone, 'must be a time zone such as Europe/Berlin.'),
  v.description(
    'Zone that the expression is about. Default UTC. A time of the day that its clock skips is due as much later, one that it shows twice is due once.',
  ),
  v.examples(['Europe/Berlin']),
)
const Command = v.pipe(
  v.union(
    [
      line(4000),
      v.pipe(
        v.array(v.pipe(v.string(), v.maxLength(4096), v.regex(/^[^\u0000]*$/))),
        v.minLength(1),
        v.maxLength(100),
      ),
    ],
    'must be a line of text or a list of arguments.',
  ),
  v.description('A line for the shell of the container, or a list of arguments that no shell sees.'),
  v.examples(['npm run clean']),
)
const Method = v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
const HeaderName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header.'),
  v.check(
    (name) => !/^(host|connection|content-length|transfer-encoding|upgrade)$/i.test(name),
    'must not be a header that the connection sets itself.',
  ),
)
const HttpCall = v.pipe(
  v.strictObject({
    url: v.pipe(
      v.string(),
      v.maxLength(2000),
      v.description('Public http or https address. Secrets belong into headers: this is shown.'),
      v.examples(['https://example.com/tasks/clean']),
    ),
    method: v.optional(Method, 'POST'),
    headers: v.optional(
      v.pipe(
        v.record(
          HeaderName,
          v.pipe(v.string(), v.maxLength(4096), v.regex(/^[^\u0000-\u001f\u007f]*$/), SECRET),
        ),
        v.description(
          'Kept encrypted and shown as `********`, which leaves a header as it is as long as the call goes to the same scheme, host and port.',
        ),
        v.examples([{ Authorization: 'Bearer 9f2b7c1e' }]),
      ),
    ),
    body: v.optional(
      v.nullable(
        v.pipe(
          v.string(),
          v.maxLength(65_536),
          SECRET,
          v.description(
            'Kept encrypted and never shown. Left out of a change, the stored one stays as long as the call goes to the same scheme, host and port; null removes it.',
          ),
        ),
      ),
    ),
  }),
  v.title('CronHttpCall'),
)
export type HttpCall = v.InferOutput<typeof HttpCall>
const entries = {
  name: v.pipe(line(100), v.description('For people.'), v.examples(['Clean up'])),
  expression: Expression,
  timezone: Timezone,
  command: Command,
  http: v.pipe(HttpCall, v.description('An HTTP call instead of a command; below 400 it has succeeded.')),
  timeout_s: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(86_400),
    v.description('Seconds after which one attempt is ended. Default 600.'),
  ),
  overlap: v.pipe(
    v.picklist(['forbid', 'allow', 'replace']),
    v.description(
      'What happens when the run before is still going on: `forbid` skips the new one, `allow` runs both, `replace` ends the older one. Default `forbid`.',
    ),
  ),
  catch_up: v.pipe(
    v.picklist(['none', 'once']),
    v.description(
      'What happens with times that passed while Portreeve was not running: nothing, or one run for all of them. They are told as missed either way. Default `none`.',
    ),
  ),
  retries: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(10),
    v.description('Further attempts after a failure. Default 0.'),
  ),
  retry_delay_s: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(3600),
    v.description('Seconds before the second attempt; doubled for each one after that. Default 10.'),
  ),
  enabled: v.pipe(v.boolean(), v.description('False pauses it.')),
}
/** Body of `POST /api/cron-jobs`. */
export const NewCronJob = v.pipe(
  v.strictObject({
    app_id: v.pipe(v.string(), v.maxLength(64), v.description('App whose image and environment it runs in.')),
    name: v.optional(entries.name),
    expression: entries.expression,
    timezone: v.optional(entries.timezone, 'UTC'),
    command: v.optional(entries.command),
    http: v.optional(entries.http),
    timeout_s: v.optional(entries.timeout_s, 600),
    overlap: v.optional(entries.overlap, 'forbid'),
    catch_up: v.optional(entries.catch_up, 'none'),
    retries: v.optional(entries.retries, 0),
    retry_delay_s: v.optional(entries.retry_delay_s, 10),
    enabled: v.optional(entries.enabled, true),
  }),
  v.title('NewCronJob'),
)
export type NewCronJob = v.InferOutput<typeof NewCronJob>
export const CronJobChange = v.pipe(v.partial(v.strictObject(entries)), v.title('CronJobChange'))
export type CronJobChange = v.InferOutput<typeof CronJobChange>

export const RunStatus = v.pipe(
  v.picklist(['queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'skipped', 'missed']),
  v.description(
    '`skipped`: the run before was still going on; `missed`: Portreeve was not running; `cancelled`: a newer run took its place, or the app went.',
  ),
)
export type RunStatus = v.InferOutput<typeof RunStatus>
export const CronRun = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['run_0123456789abcdefghjk'])),
    cron_job_id: v.string(),
    app_id: v.string(),
    slot: v.nullable(v.pipe(Timestamp, v.description('When it was due; null for a run by hand.'))),
    trigger: v.picklist(['schedule', 'catch_up', 'manual']),
    status: RunStatus,
    attempts: v.pipe(v.number(), v.description('How often it was tried.')),
    exit_code: v.nullable(v.number()),
    http_status: v.nullable(v.number()),
    error: v.nullable(
      v.pipe(v.string(), v.description('What went wrong, or why it waits, in one sentence.')),
    ),
    output: v.pipe(
      v.string(),
      v.description(
        'The last 64 KiB that the command printed, or the first 4 KiB of an answer; secrets are left out. Empty where later runs of the job took the 1 MiB that all of them keep.',
      ),
    ),
    truncated: v.boolean(),
    created_by: v.nullable(v.string()),
    created_at: Timestamp,
    started_at: v.nullable(Timestamp),
    finished_at: v.nullable(Timestamp),
    duration_ms: v.nullable(v.number()),
  }),
  v.title('CronRun'),
)
export type CronRun = v.InferOutput<typeof CronRun>

export const CronJob = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['cron_0123456789abcdefghjk'])),
    app_id: v.string(),
    project_id: v.string(),
    name: v.string(),
    expression: v.string(),
    timezone: v.string(),
    command: v.nullable(v.union([v.string(), v.array(v.string())])),
    http: v.nullable(
      v.object({
        url: v.string(),
        method: Method,
        headers: v.record(v.string(), v.literal(MASK)),
        has_body: v.boolean(),
      }),
    ),
    timeout_s: v.number(),
    overlap: v.picklist(['forbid', 'allow', 'replace']),
    catch_up: v.picklist(['none', 'once']),
    retries: v.number(),
    retry_delay_s: v.number(),
    enabled: v.boolean(),
    source: v.pipe(
      v.picklist(['api', 'repository']),
      v.description(
        '`repository`: of portreeve.json or app.json of what is live; it can be paused and run here.',
      ),
    ),
    next_run_at: v.nullable(
      v.pipe(Timestamp, v.description('When it is due next; null while it is paused.')),
    ),
    last_run: v.nullable(
      v.object({
        id: v.string(),
        status: RunStatus,
        created_at: Timestamp,
        finished_at: v.nullable(Timestamp),
      }),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('CronJob'),
)
export type CronJob = v.InferOutput<typeof CronJob>
export const CronJobQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'next_run_at', 'created_at']),
  project_id: severalIds('Only jobs of this project.'),
  app_id: severalIds('Only jobs of this app.'),
})
export const CronRunQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['status', 'duration_ms', 'created_at']),
  status: several(RunStatus),
})
