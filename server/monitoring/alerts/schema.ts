import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import {
  GivenTime,
  list,
  pagingEntries,
  several,
  severalIds,
  sorting,
  Timestamp,
} from '#server/kernel/schemas'
import { ALERT_METRICS } from './metric.ts'

const SubjectKind = v.pipe(
  v.picklist(['server', 'app', 'database']),
  v.title('AlertSubjectKind'),
  v.description('Resource that the rule watches.'),
)
const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.description('Display name; its messages begin with it.'),
  v.examples(['Slow answers']),
)
const Metric = v.pipe(
  v.picklist(ALERT_METRICS),
  v.title('AlertMetric'),
  v.description(
    'What is measured; shares are in percent, times in milliseconds, sizes in bytes. `memory_percent`, `disk_percent` and `load_1m` are of the server; requests, errors and latency of apps.',
  ),
)
const Comparison = v.pipe(
  v.picklist(['above', 'below']),
  v.description('On which side of the threshold it is bad.'),
)
const Threshold = v.pipe(
  v.number(),
  v.minValue(0),
  v.maxValue(1e15),
  v.description('In the unit of the metric.'),
  v.examples([80]),
)
const For = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(0),
  v.maxValue(86_400),
  v.description('Seconds for which it must be bad before anybody is told.'),
)
const Severity = v.pipe(
  v.picklist(['info', 'warning', 'critical']),
  v.title('AlertSeverity'),
  v.description('How urgent it is.'),
)
const Channels = v.pipe(
  v.array(v.pipe(v.string(), v.maxLength(64))),
  v.maxLength(20),
  v.description(
    'Ids of the notification webhooks of the project that are told, whatever events they ask for. Empty: all that ask for `alert.*`.',
  ),
)
const Enabled = v.pipe(v.boolean(), v.description('Whether it watches.'))
const Silence = v.pipe(
  v.nullable(GivenTime),
  v.description('No notification is sent until then; what fires at its end is told then. Null ends it now.'),
)

export const NewAlertRule = v.pipe(
  v.strictObject({
    project_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description('Project that it watches; the default project when absent.'),
      ),
    ),
    name: Name,
    subject_kind: v.optional(SubjectKind, 'app'),
    subject_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description('One app or database; all of the project when absent.'),
      ),
    ),
    metric: Metric,
    comparison: v.optional(Comparison, 'above'),
    threshold: Threshold,
    for_s: v.optional(For, 60),
    severity: v.optional(Severity, 'warning'),
    channels: v.optional(Channels, []),
    enabled: v.optional(Enabled, true),
  }),
  v.title('NewAlertRule'),
)
export type NewAlertRule = v.InferOutput<typeof NewAlertRule>
export const AlertRuleChange = v.pipe(
  v.partial(
    v.strictObject({
      name: Name,
      metric: Metric,
      comparison: Comparison,
      threshold: Threshold,
      for_s: For,
      severity: Severity,
      channels: Channels,
      enabled: Enabled,
      silenced_until: Silence,
    }),
  ),
  v.title('AlertRuleChange'),
)
export type AlertRuleChange = v.InferOutput<typeof AlertRuleChange>

const AlertState = v.pipe(
  v.picklist(['ok', 'pending', 'firing', 'resolved', 'silenced']),
  v.title('AlertState'),
  v.description('`pending`: bad, but not for long enough; `silenced`: nobody is told.'),
)
export const AlertRule = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['alr_0123456789abcdefghjk'])),
    project_id: v.nullable(v.pipe(v.string(), v.description('Null for rules of the installation.'))),
    builtin: v.nullable(
      v.pipe(v.string(), v.description('Name of a rule that every installation has; null for your own.')),
    ),
    name: Name,
    subject_kind: SubjectKind,
    subject_id: v.nullable(v.pipe(v.string(), v.description('Null: all of its kind.'))),
    metric: v.nullable(v.pipe(Metric, v.description('Null for rules that watch events.'))),
    comparison: v.nullable(Comparison),
    threshold: v.nullable(Threshold),
    for_s: For,
    severity: Severity,
    channels: Channels,
    enabled: Enabled,
    silenced_until: v.nullable(Timestamp),
    state: AlertState,
    subjects: v.pipe(
      v.array(
        v.object({
          subject_id: v.pipe(
            v.string(),
            v.description('Resource that it is about, `server`, or `platform` for its own backups.'),
          ),
          state: AlertState,
          since: Timestamp,
          value: v.nullable(v.pipe(v.number(), v.description('In the unit of the metric.'))),
          message: v.pipe(v.string(), v.description('What is wrong, as a sentence.')),
        }),
      ),
      v.description('Current problems among the resources that you can see, the worst first, at most 100.'),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('AlertRule'),
)
export type AlertRule = v.InferOutput<typeof AlertRule>
export const AlertRuleList = list(AlertRule)
export const AlertQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'severity', 'state', 'created_at'], 'Built-in ones first.'),
  project_id: severalIds('Only rules of this project.'),
  state: several(AlertState),
})

export const AlertHistory = v.pipe(
  v.object({
    id: v.string(),
    rule_id: v.pipe(v.string(), v.description('Rule that fired; it may be gone.')),
    rule_name: v.pipe(v.string(), v.description('Its name at that time.')),
    project_id: v.nullable(v.string()),
    subject_id: v.pipe(
      v.string(),
      v.description('Resource that it is about, `server`, or `platform` for its own backups.'),
    ),
    severity: Severity,
    message: v.pipe(v.string(), v.description('What was wrong, as a sentence.')),
    value: v.nullable(v.pipe(v.number(), v.description('In the unit of the metric.'))),
    fired_at: Timestamp,
    resolved_at: v.nullable(v.pipe(Timestamp, v.description('Null while it fires.'))),
  }),
  v.title('AlertHistory'),
)
