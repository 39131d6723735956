import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { list, pagingEntries, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

const whole = (least: number, most: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))
const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.description('Display name, also shown on the status page.'),
  v.examples(['Shop']),
)
const Kind = v.pipe(
  v.picklist(['http', 'tcp', 'tls']),
  v.title('UptimeKind'),
  v.description(
    '`http`: an address is requested; `tcp`: a connection is opened; `tls`: the end of a certificate is looked at.',
  ),
)
const Target = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2000),
  v.description('Address for `http`; `host:port` for `tcp` and `tls`.'),
  v.examples(['https://shop.example.com/health', 'db.example.com:5432']),
)
export const LONGEST_INTERVAL_S = 86_400
const Interval = v.pipe(whole(10, LONGEST_INTERVAL_S), v.description('Seconds between two looks.'))
const Timeout = v.pipe(whole(1, 60), v.description('Seconds until it counts as failed.'))
const Status = v.pipe(
  whole(100, 599),
  v.description(
    'HTTP status that is expected, after redirects unless it is one itself; any below 400 when absent.',
  ),
)
const Text = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(500),
  v.description('Text that the answer must hold.'),
)
const DaysLeft = v.pipe(
  whole(1, 365),
  v.description('For `tls`: fails when fewer days are left. Default 14.'),
)
const Failures = v.pipe(whole(1, 10), v.description('Failures in a row after which it is down.'))
const Enabled = v.pipe(v.boolean(), v.description('Whether it runs.'))
const Public = v.pipe(v.boolean(), v.description('Whether the status page of the project shows it.'))

export const NewUptimeCheck = v.pipe(
  v.strictObject({
    project_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description('Project that it belongs to; the default project when absent.'),
      ),
    ),
    app_id: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('App that it is about.'))),
    name: Name,
    kind: v.optional(Kind, 'http'),
    target: Target,
    interval_s: v.optional(Interval, 60),
    timeout_s: v.optional(Timeout, 10),
    expected_status: v.optional(v.nullable(Status)),
    expected_text: v.optional(v.nullable(Text)),
    days_left: v.optional(v.nullable(DaysLeft)),
    failures_needed: v.optional(Failures, 2),
    enabled: v.optional(Enabled, true),
    public: v.optional(Public, false),
  }),
  v.title('NewUptimeCheck'),
)
export type NewUptimeCheck = v.InferOutput<typeof NewUptimeCheck>

export const UptimeCheckChange = v.pipe(
  v.partial(
    v.strictObject({
      name: Name,
      target: Target,
      interval_s: Interval,
      timeout_s: Timeout,
      expected_status: v.nullable(Status),
      expected_text: v.nullable(Text),
      days_left: v.nullable(DaysLeft),
      failures_needed: Failures,
      enabled: Enabled,
      public: Public,
    }),
  ),
  v.title('UptimeCheckChange'),
)
export type UptimeCheckChange = v.InferOutput<typeof UptimeCheckChange>

const percent = (range: string) =>
  v.nullable(v.pipe(v.number(), v.description(`Share of the looks ${range} that succeeded, in percent.`)))
const entries = {
  id: v.pipe(v.string(), v.examples(['upt_0123456789abcdefghjk'])),
  project_id: v.pipe(v.string(), v.description('Project that it belongs to.')),
  app_id: v.nullable(v.pipe(v.string(), v.description('App that it is about.'))),
  name: Name,
  kind: Kind,
  target: Target,
  interval_s: Interval,
  timeout_s: Timeout,
  expected_status: v.nullable(Status),
  expected_text: v.nullable(Text),
  days_left: v.nullable(DaysLeft),
  failures_needed: Failures,
  enabled: Enabled,
  public: Public,
  status_page: v.nullable(
    v.pipe(
      v.string(),
      v.description('Path of the public page that shows it; `?format=atom` is its feed.'),
      v.examples(['/status/pQ3v']),
    ),
  ),
  status: v.pipe(
    v.picklist(['unknown', 'up', 'down', 'paused']),
    v.title('UptimeStatus'),
    v.description('`unknown` until the first look.'),
  ),
  last_error: v.nullable(v.pipe(v.string(), v.description('Why the last look failed, as a sentence.'))),
  last_latency_ms: v.nullable(v.pipe(v.number(), v.description('Time of the last look in milliseconds.'))),
  checked_at: v.nullable(Timestamp),
  changed_at: v.nullable(v.pipe(Timestamp, v.description('Since when it has its status.'))),
  availability_24h_percent: percent('of today'),
  availability_7d_percent: percent('of seven days'),
  availability_30d_percent: percent('of thirty days'),
  latency_average_ms: v.nullable(
    v.pipe(v.number(), v.description('Average time of the looks of thirty days, in milliseconds.')),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const UptimeCheck = v.pipe(v.object(entries), v.title('UptimeCheck'))
export type UptimeCheck = v.InferOutput<typeof UptimeCheck>
export const UptimeCheckList = list(UptimeCheck)

export const UptimeCheckHistory = v.pipe(
  v.object({
    ...entries,
    results: v.array(
      v.object({
        at: v.pipe(Timestamp, v.description('Start of the interval.')),
        checks: v.pipe(v.number(), v.integer(), v.description('Looks in the interval.')),
        failures: v.pipe(v.number(), v.integer(), v.description('Those that failed.')),
        latency_average_ms: v.pipe(v.number(), v.description('Average time in milliseconds.')),
        latency_peak_ms: v.pipe(v.number(), v.description('Longest time in milliseconds.')),
        last_error: v.nullable(v.pipe(v.string(), v.description('Why the last failed look failed.'))),
      }),
    ),
  }),
  v.title('UptimeCheckHistory'),
)
export const UptimeQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'status', 'created_at']),
  project_id: severalIds('Only those of this project.'),
  app_id: severalIds('Only those of this app.'),
})
export const UptimeHistoryQuery = v.strictObject({
  days: v.optional(
    v.pipe(
      whole(1, 365),
      v.description('Days of results: in intervals of five minutes up to 7, of a day beyond.'),
    ),
    1,
  ),
})
