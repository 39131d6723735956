import * as v from 'valibot'

const many = (what: string) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10_000), v.description(what)))

/** A backup is kept as long as one of the rules keeps it. Without a rule everything is kept. */
export const Retention = v.pipe(
  v.strictObject({
    count: many('The newest so many.'),
    days: many('Those of the last so many days.'),
    daily: many('The newest of each of the last so many days that have one.'),
    weekly: many('The same for weeks, which begin on Monday.'),
    monthly: many('The same for months.'),
    yearly: many('The same for years.'),
  }),
  v.title('Retention'),
)
export type Retention = v.InferOutput<typeof Retention>

interface Dated {
  id: string
  created_at: string
}
/**
 * Backups in the order in which they were made, the last one first. Times do not tell that order: a clock that was
 * ahead, or back, for a while gave some of them a time with which each good one after it would be the oldest.
 */
type Made<T extends Dated = Dated> = readonly T[]
const DAY_MS = 86_400_000

/**
 * The days of times on the clock of a zone, as `2026-01-31`. To look a zone up takes long, and to format a time
 * takes a while: both are done once, since a schedule may have ten thousand backups, and each rule asks for each.
 */
function daysIn(timezone: string): (at: string) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: timezone, dateStyle: 'short' })
  const known = new Map<string, string>()
  return (at) => {
    const day = known.get(at) ?? format.format(new Date(at))
    known.set(at, day)
    return day
  }
}
/** The Monday of a day's week. */
function weekOf(day: string): string {
  const date = new Date(`${day}T00:00:00Z`)
  const since_monday = (date.getUTCDay() + 6) % 7
  return new Date(date.getTime() - since_monday * DAY_MS).toISOString().slice(0, 10)
}
const PERIODS = {
  daily: (day: string) => day,
  weekly: weekOf,
  monthly: (day: string) => day.slice(0, 7),
  yearly: (day: string) => day.slice(0, 4),
} as const

/** The first day after a period, counted on from the period that a day is in. */
const AFTER: Record<keyof typeof PERIODS, (day: string, count: number) => number> = {
  daily: (day, count) => Date.parse(`${day}T00:00:00Z`) + count * DAY_MS,
  weekly: (day, count) => Date.parse(`${weekOf(day)}T00:00:00Z`) + 7 * count * DAY_MS,
  monthly: (day, count) => Date.UTC(Number(day.slice(0, 4)), Number(day.slice(5, 7)) - 1 + count),
  yearly: (day, count) => Date.UTC(Number(day.slice(0, 4)) + count, 0),
}

/** The end of the years that are written with four digits. */
const LAST_MS = Date.UTC(10_000, 0) - 1

/**
 * When the age of each backup alone no longer keeps it, as ISO times by id: as if one were made in every period
 * to come. Null while a rule keeps it in which age does not matter, or for thousands of years.
 */
export function expiries(
  newest_first: Made,
  retention: Retention,
  { timezone }: { timezone: string },
): Map<string, string | null> {
  const seen = new Set<string>()
  const dayOf = daysIn(timezone)
  return new Map(
    newest_first.map(({ id, created_at }, index) => {
      const ends: number[] = []
      if (retention.days !== undefined) ends.push(Date.parse(created_at) + retention.days * DAY_MS)
      const day = dayOf(created_at)
      for (const [rule, periodOf] of Object.entries(PERIODS)) {
        const name = rule as keyof typeof PERIODS
        const period = `${rule} ${periodOf(day)}`
        if (retention[name] === undefined || seen.has(period)) continue
        seen.add(period)
        ends.push(AFTER[name](day, retention[name]))
      }
      const is_counted = retention.count !== undefined && index < retention.count
      const end = Math.max(...ends)
      const is_told = !is_counted && ends.length > 0 && end <= LAST_MS
      return [id, is_told ? new Date(end).toISOString() : null]
    }),
  )
}

/**
 * Which of the good backups of a schedule may go. The newest good one always stays, whatever the rules say.
 */
export function selectExpired<T extends Dated>(
  newest_first: Made<T>,
  retention: Retention,
  { now, timezone }: { now: number; timezone: string },
): T[] {
  if (Object.values(retention).every((value) => value === undefined)) return []
  const kept = new Set(newest_first.slice(0, Math.max(1, retention.count ?? 0)))
  if (retention.days !== undefined)
    for (const backup of newest_first)
      if (Date.parse(backup.created_at) > now - retention.days * DAY_MS) kept.add(backup)
  const dayOf = daysIn(timezone)
  for (const [rule, periodOf] of Object.entries(PERIODS)) {
    const most = retention[rule as keyof typeof PERIODS]
    if (most === undefined) continue
    const seen = new Set<string>()
    for (const backup of newest_first) {
      const period = periodOf(dayOf(backup.created_at))
      if (seen.has(period)) continue
      if (seen.size === most) break
      seen.add(period)
      kept.add(backup)
    }
  }
  return newest_first.filter((backup) => !kept.has(backup))
}
