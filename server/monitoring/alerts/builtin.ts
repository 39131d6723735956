import type { AlertMetric } from './metric.ts'

/** A rule that every installation has from the start. Source: api.md "Monitoring". */
export interface BuiltinRule {
  key: string
  name: string
  severity: 'info' | 'warning' | 'critical'
  subject_kind: 'server' | 'app' | 'database'
  /** Events that raise it, and those that end it; both name their subject. */
  raised_by?: readonly string[]
  ended_by?: readonly string[]
  /** Whether an event that would raise it means something else. */
  unless?(event: { type: string; payload: Readonly<Record<string, unknown>> }): boolean
  /** Ends by itself after so many seconds, for what has no event of its own that ends it. */
  ends_after_s?: number
  /** Or a metric that is watched. */
  metric?: { name: AlertMetric; comparison: 'above' | 'below'; threshold: number; for_s: number }
  /** What a person reads; `{name}` is the subject, `{cause}` what the event told. */
  message: string
}

export const BUILTIN: readonly BuiltinRule[] = [
  {
    key: 'app_crashed',
    name: 'App crashed',
    severity: 'critical',
    subject_kind: 'app',
    raised_by: ['app.crashed', 'app.failed'],
    ended_by: ['app.running', 'app.stopped', 'app.deleting', 'app.deleted'],
    // A first deployment that failed, for which there is a rule of its own: nothing ever ran.
    unless: ({ type, payload }) => type === 'app.failed' && payload.from === 'building',
    message: '{name} has crashed: nothing of it serves.',
  },
  {
    key: 'app_out_of_memory',
    name: 'App ran out of memory',
    severity: 'warning',
    subject_kind: 'app',
    raised_by: ['app.oom_killed'],
    ends_after_s: 900,
    message: 'An instance of {name} was killed because it used more memory than its limit.',
  },
  {
    key: 'deployment_failed',
    name: 'Deployment failed',
    severity: 'warning',
    subject_kind: 'app',
    raised_by: ['deployment.failed'],
    ended_by: ['deployment.finished', 'app.deleted'],
    message: 'A deployment of {name} failed. {cause}',
  },
  {
    key: 'disk_full',
    name: 'Disk above 85 %',
    severity: 'critical',
    subject_kind: 'server',
    metric: { name: 'disk_percent', comparison: 'above', threshold: 85, for_s: 60 },
    message:
      'The disk of the server is {value} % full. Delete backups and apps that are not needed, or enlarge it.',
  },
  {
    key: 'certificate',
    name: 'Certificate expires or cannot be issued',
    severity: 'critical',
    subject_kind: 'app',
    raised_by: ['certificate.failed', 'certificate.expiring', 'certificate.expired'],
    ended_by: ['certificate.issued', 'certificate.renewed', 'certificate.revoked', 'certificate.deleted'],
    message: 'The certificate of {name} needs attention. {cause}',
  },
  {
    key: 'backup',
    name: 'Backup failed or was missed',
    severity: 'critical',
    subject_kind: 'database',
    raised_by: ['backup.failed', 'backup.missed', 'database.archive_failing', 'database.archive_gap'],
    ended_by: [
      'backup.succeeded',
      'database.archive_working',
      'database.archive_copied',
      'database.deleted',
      'volume.deleted',
      'app.deleted',
    ],
    message: 'A backup of {name} failed or did not run. {cause}',
  },
  {
    key: 'cron_missed',
    name: 'Cron job missed',
    severity: 'warning',
    subject_kind: 'app',
    raised_by: ['cron.missed'],
    ended_by: ['cron.succeeded', 'cron_job.deleted'],
    ends_after_s: 86_400,
    message: 'The cron job {name} did not run when it should have. {cause}',
  },
  {
    key: 'node_unreachable',
    name: 'Node unreachable',
    severity: 'critical',
    subject_kind: 'server',
    raised_by: ['node.unreachable'],
    ended_by: ['node.ready', 'node.removed'],
    message: 'The node {name} does not answer.',
  },
  {
    key: 'uptime',
    name: 'Uptime check failed',
    severity: 'critical',
    subject_kind: 'app',
    raised_by: ['uptime.down'],
    ended_by: ['uptime.up', 'uptime.paused', 'uptime.deleted'],
    message: '{name} is down. {cause}',
  },
]

/** A message with what it is about; names are a user's, and braces in them stand for nothing. */
export const sentence = (template: string, facts: { name: string; cause?: string; value?: number | null }) =>
  template
    .replace(/\{(name|cause|value)\}/g, (_, fact) =>
      fact === 'value' ? String(Math.round(facts.value ?? 0)) : (facts[fact as 'name' | 'cause'] ?? ''),
    )
    .trim()

/** Every event that raises or ends an alert: all others are passed over without a look at the rules. */
export const WATCHED_EVENTS: ReadonlySet<string> = new Set(
  BUILTIN.flatMap(({ raised_by = [], ended_by = [] }) => [...raised_by, ...ended_by]),
)
