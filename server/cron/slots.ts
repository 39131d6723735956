import { Cron } from 'croner'

/** Patterns of everyday schedules by name. */
const NAMED = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/
/** No cache grows beyond this; apps of a whole installation rarely have so many patterns. */
const MOST_PATTERNS = 5000
/**
 * One takes 40 KB, which is no part of the heap, and a zone may be written in any case: with as many as of patterns,
 * one job that is changed over and over took 200 MB.
 */
const MOST_FORMATS = 100
const MINUTE_MS = 60_000

const patterns = new Map<string, Cron>()
const formats = new Map<string, Intl.DateTimeFormat>()

function kept<T>(cache: Map<string, T>, most: number, key: string, make: () => T): T {
  const known = cache.get(key)
  if (known !== undefined) return known
  if (cache.size >= most) cache.clear()
  const made = make()
  cache.set(key, made)
  return made
}

/** The 29th of February falls on each day of the week within so many years, also around 2100. */
const YEARS = 60

/**
 * The pattern for the years in which a slot can be at all. Without them a date that does not exist, such as the
 * 30th of February, is looked for in each year until 9999, in which time nobody is answered.
 */
function soon(expression: string, from_ms: number): string {
  if (NAMED.test(expression)) return expression
  const decade = Math.floor(new Date(from_ms).getUTCFullYear() / 10) * 10
  const seconds = expression.split(' ').length === 5 ? '0 ' : ''
  return `${seconds}${expression} ${decade}-${decade + YEARS}`
}
const inZone = (pattern: string, timezone: string): Cron =>
  kept(patterns, MOST_PATTERNS, `${timezone} ${pattern}`, () => new Cron(pattern, { timezone, paused: true }))
const atOffset = (pattern: string, minutes: number): Cron =>
  kept(
    patterns,
    MOST_PATTERNS,
    `${minutes} ${pattern}`,
    () => new Cron(pattern, { utcOffset: minutes, paused: true }),
  )

/** Minutes by which a zone is ahead of UTC at a time. */
function offsetAt(timezone: string, at_ms: number): number {
  const format = kept(
    formats,
    MOST_FORMATS,
    timezone,
    () => new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' }),
  )
  const name = format.formatToParts(at_ms).find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT'
  const [, sign, hours = '0', minutes = '0'] = /^GMT([+-])(\d\d):(\d\d)$/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** The first minute of the new offset between two times with different ones. */
function changeBetween(timezone: string, from_ms: number, to_ms: number): number {
  const before = offsetAt(timezone, from_ms)
  let [low, high] = [Math.floor(from_ms / MINUTE_MS), Math.ceil(to_ms / MINUTE_MS)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(timezone, middle * MINUTE_MS) === before) low = middle
    else high = middle
  }
  return high * MINUTE_MS
}

/** Whether a pattern runs in every hour, so that it is about intervals and not about times of the day. */
const isEveryHour = (expression: string): boolean => {
  const fields = expression.split(' ')
  return expression === '@hourly' || fields.at(-4) === '*'
}

/**
 * When a schedule is due next after a time; undefined when it never is again. A time of the day that the clock
 * of the zone skips is due as much later, and one that it shows twice is due once. What runs in every hour
 * does not notice that clocks change.
 */
export function nextSlot(expression: string, timezone: string, after_ms: number): number | undefined {
  const next = (cron: Cron, from_ms: number) => cron.nextRun(new Date(from_ms))?.getTime()
  const pattern = soon(expression, after_ms)
  if (!isEveryHour(expression)) return next(inZone(pattern, timezone), after_ms)
  const offset = offsetAt(timezone, after_ms)
  const slot = next(atOffset(pattern, offset), after_ms)
  if (slot === undefined || offsetAt(timezone, slot) === offset) return slot
  const change = changeBetween(timezone, after_ms, slot)
  return next(atOffset(pattern, offsetAt(timezone, change)), change - 1)
}

/** Eight years: so long it may be from one 29th of February to the next. */
const LOOKED_BACK_MINUTES = 4_207_680

/**
 * When a schedule was due last, up to a time; undefined when it was not within the last eight years. The last
 * minute whose next slot is not past the time is found by halving, however many slots there were before it.
 */
export function lastSlot(expression: string, timezone: string, until_ms: number): number | undefined {
  const nextAfter = (minutes_back: number) =>
    nextSlot(expression, timezone, until_ms - minutes_back * MINUTE_MS)
  let far = LOOKED_BACK_MINUTES
  let last = nextAfter(far)
  if (last === undefined || last > until_ms) return undefined
  for (let near = 0; far - near > 1; ) {
    const middle = Math.floor((far + near) / 2)
    const slot = nextAfter(middle)
    if (slot === undefined || slot > until_ms) near = middle
    else [far, last] = [middle, slot]
  }
  return last
}

/** A zone of the IANA data base, by a name that it knows. */
export function isTimezone(text: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: text })
    return /^[A-Za-z]/.test(text)
  } catch {
    return false
  }
}

/** What is wrong with an expression; undefined when it can be scheduled. */
export function faultOf(expression: string, timezone: string, now_ms: number): string | undefined {
  const fields = expression.split(' ')
  if (!NAMED.test(expression) && fields.length !== 5 && fields.length !== 6)
    return 'must be five or six fields, or @hourly, @daily, @weekly, @monthly or @yearly.'
  if (fields.length === 6 && !/^\d{1,2}$/.test(fields[0]!))
    return 'would run more than once a minute: with six fields, the first has to be one second of the minute.'
  try {
    if (nextSlot(expression, timezone, now_ms) === undefined) return 'never comes: no such date exists.'
    return undefined
  } catch {
    return 'is no schedule: minute, hour, day of month, month and day of week, such as 30 4 * * 1-5.'
  }
}

/** The expression with one space between its fields. */
export const plainExpression = (text: string): string => text.trim().replace(/[ \t]+/g, ' ')
