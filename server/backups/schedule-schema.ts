import { hasControl } from '#server/kernel/one-line'
import { Cron } from 'croner'
import * as v from 'valibot'
import { pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import { Retention } from './retention.ts'
import { Encrypted, PauseApp, TargetKind } from './schema.ts'

const LONGEST = 100

/** The 29th of February falls on each day of the week within so many years, also around 2100. */
const YEARS = 60

/**
 * Whether there is such a time at all. Without years, the 31st of February would be looked for until 9999, in which
 * time nobody is answered. What is too long has its own sentence.
 */
function isPattern(text: string): boolean {
  if (text.length > LONGEST) return true
  const fields = text.trim().split(/\s+/)
  const next = (pattern: string) => new Cron(pattern, { paused: true, timezone: 'UTC' }).nextRun()
  try {
    // A single moment has one field as well; a date would run once and never again.
    if (fields.length !== 5) return /^\s*@\w+\s*$/.test(text) && next(text.trim()) !== null
    const year = next('@yearly')!.getUTCFullYear() - 1
    return next(`0 ${fields.join(' ')} ${year}-${year + YEARS}`) !== null
  } catch {
    return false
  }
}
function isZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}
const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
)
const Pattern = v.pipe(
  v.string(),
  v.maxLength(LONGEST),
  v.check(isPattern, 'must be a cron expression of five fields, or one such as @daily, that has a next run.'),
  v.description('When: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly.'),
  v.examples(['30 3 * * *']),
)
const Zone = v.pipe(
  v.string(),
  v.maxLength(64),
  v.check(isZone, 'must be a time zone such as Europe/Berlin.'),
  v.description('Time zone in which the expression is read. A slot that a clock change repeats runs once.'),
)
const destination = v.pipe(
  v.nullable(v.pipe(v.string(), v.maxLength(64))),
  v.description('Storage provider; null means the one that is the default at that time.'),
)
export const NewSchedule = v.pipe(
  v.strictObject({
    name: Name,
    target: TargetKind,
    target_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
    cron: Pattern,
    timezone: v.optional(Zone, 'UTC'),
    retention: v.optional(Retention, { count: 7 }),
    destination_id: v.optional(destination, null),
    encrypted: v.optional(Encrypted, true),
    pause_app: v.optional(PauseApp, false),
    enabled: v.optional(v.boolean(), true),
  }),
  v.title('NewBackupSchedule'),
)
export type NewSchedule = v.InferOutput<typeof NewSchedule>
export const ScheduleChange = v.pipe(
  v.strictObject({
    name: v.optional(Name),
    cron: v.optional(Pattern),
    timezone: v.optional(Zone),
    retention: v.optional(Retention),
    destination_id: v.optional(destination),
    encrypted: v.optional(Encrypted),
    pause_app: v.optional(PauseApp),
    enabled: v.optional(v.pipe(v.boolean(), v.description('False pauses the schedule, true resumes it.'))),
  }),
  v.title('BackupScheduleChange'),
)
export type ScheduleChange = v.InferOutput<typeof ScheduleChange>

export const Schedule = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    target: TargetKind,
    target_id: v.nullable(v.string()),
    project_id: v.nullable(v.string()),
    cron: v.string(),
    timezone: v.string(),
    retention: Retention,
    destination_id: destination,
    encrypted: Encrypted,
    pause_app: PauseApp,
    enabled: v.boolean(),
    next_run_at: v.pipe(v.nullable(Timestamp), v.description('Null while the schedule is paused.')),
    last_run_at: v.pipe(
      v.nullable(Timestamp),
      v.description('When it last began a backup, in its slot or since somebody asked for it; null: never.'),
    ),
    last_missed_at: v.pipe(
      v.nullable(Timestamp),
      v.description('The last slot that passed without a backup, because Portreeve was down.'),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('BackupSchedule'),
)
export type Schedule = v.InferOutput<typeof Schedule>
export const ScheduleQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'next_run_at', 'created_at']),
  project_id: severalIds('Only schedules of this project.'),
  target: several(TargetKind),
  target_id: severalIds('Only schedules of this database, volume or app.'),
})
