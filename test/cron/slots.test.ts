import { describe, expect, it, vi } from 'vitest'
import { faultOf, lastSlot, nextSlot } from '#server/cron/slots'

/** Clocks that change at 1, 2 and 3 in the morning, at midnight, by half an hour, and on both halves of the earth. */
const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'America/Santiago',
  'Australia/Lord_Howe',
  'Pacific/Auckland',
] as const
const FROM = Date.parse('2026-01-01T00:00:00Z')
const TO = Date.parse('2027-01-01T00:00:00Z')
const MINUTE_MS = 60_000

/** Every slot of the year, as the scheduler walks from one to the next. */
function year(expression: string, zone: string): number[] {
  const slots: number[] = []
  for (
    let at = nextSlot(expression, zone, FROM - 1);
    at !== undefined && at < TO;
    at = nextSlot(expression, zone, at)
  )
    slots.push(at)
  return slots
}
/** Every minute of the year in UTC whose wall clock shows one of these minutes, read without any scheduler. */
function minutesShowing(minutes: readonly number[], zone: string): number[] {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, minute: 'numeric' })
  const found: number[] = []
  for (let at = FROM; at < TO; at += MINUTE_MS)
    // Offsets are whole minutes, so only the minute of the hour has to be looked at.
    if (at % (15 * MINUTE_MS) === 0 && minutes.includes(Number(format.format(at)))) found.push(at)
  return found
}
const dayOf = (zone: string) => {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
  return (at: number) => format.format(at)
}
const timeOf = (zone: string) => {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'short' })
  return (at: number) => format.format(at)
}

describe.each(ZONES)('a year of schedules in %s', (zone) => {
  it.each(['30 0 * * *', '15 1 * * *', '30 2 * * *', '45 2 * * *', '0 3 * * *', '10 0 2 * * *'])(
    'at a time of the day runs each day once: %s',
    (expression) => {
      const slots = year(expression, zone)
      const days = slots.map(dayOf(zone))
      expect(new Set(days).size).toBe(days.length)
      expect(days.length).toBeGreaterThanOrEqual(364)
      const odd = slots.map(timeOf(zone)).filter((time, _i, all) => time !== all[100])
      // The one day on which that time does not exist; at the year's ends of other zones nothing is odd.
      expect(odd.length).toBeLessThanOrEqual(1)
    },
  )
  it.each([
    ['0,15,45 * * * *', [0, 15, 45]],
    ['@hourly', [0]],
  ] as const)(
    'in every hour runs whenever the clock shows it, also in an hour that comes twice: %s',
    (expression, minutes) => {
      expect(year(expression, zone)).toEqual(minutesShowing(minutes, zone))
    },
  )
})

describe('the last time that a schedule was due', () => {
  it.each([
    ['* * * * *', '2026-03-01T12:00:00.000Z'],
    ['0 */6 * * *', '2026-03-01T12:00:00.000Z'],
    ['30 4 * * 1', '2026-02-23T04:30:00.000Z'],
    ['0 0 29 2 *', '2024-02-29T00:00:00.000Z'],
  ])('is found however long ago it was: %s', (expression, expected) => {
    expect(new Date(lastSlot(expression, 'UTC', Date.parse('2026-03-01T12:00:30Z'))!).toISOString()).toBe(
      expected,
    )
  })
})

describe('an expression', () => {
  it.each([
    ['', /five or six fields/],
    ['@every 1ns', /five or six fields/],
    ['@reboot', /five or six fields/],
    ['2026-01-01T00:00:00', /five or six fields/],
    ['* * * * * *', /more than once a minute/],
    ['*/10 * * * * *', /more than once a minute/],
    ['*/0 * * * *', /is no schedule/],
    ['60 * * * *', /is no schedule/],
    ['a b c d e', /is no schedule/],
    ['0 0 30 2 *', /never comes/],
    // Looked for until the year 9999 it would exhaust the stack, which is another sentence.
    ['0 0 31 2,4,6,9,11 *', /never comes/],
    ['0 0 29 2 +1#1', /never comes/],
  ])('that cannot be scheduled says why: %j', (expression, message) => {
    expect(faultOf(expression, 'UTC', FROM)).toMatch(message)
  })
  it('finds the rarest date there is, over the year 2100, which has no 29th of February', () => {
    const monday = nextSlot('0 0 29 2 +1', 'UTC', Date.parse('2096-03-01T00:00:00Z'))
    expect(new Date(monday!).toISOString()).toBe('2112-02-29T00:00:00.000Z')
    expect(lastSlot('* * 30 2 *', 'UTC', FROM)).toBeUndefined()
  })
  it.each(['*/5 * * * *', '0 0 29 2 *', '@daily', '30 0 4 * * MON-FRI', '0 0 1 jan *', '0 12 * * 7'])(
    'that can be is taken: %j',
    (expression) => {
      expect(faultOf(expression, 'Europe/Berlin', FROM)).toBeUndefined()
    },
  )
})

it('the last slot is found in no time, however many there were before a long pause', () => {
  const started = process.cpuUsage()
  expect(
    new Date(lastSlot('* 0-23 * 1 *', 'Europe/Berlin', Date.parse('2026-12-05T12:00:00Z'))!).toISOString(),
  ).toBe('2026-01-31T22:59:00.000Z')
  expect(process.cpuUsage(started).user).toBeLessThan(1_000_000)
})

it('a zone that is written in hundreds of ways leaves few formats in memory, which take 40 KB each', () => {
  const hourly = (timezone: string) => nextSlot('0 * * * *', timezone, Date.parse('2026-11-27T05:30:00Z'))
  const spelling = (number: number) =>
    [...'america/argentina/']
      .map((letter, at) => ((number >> at) & 1 ? letter.toUpperCase() : letter))
      .concat('Ushuaia')
      .join('')
  const made = vi.spyOn(Intl, 'DateTimeFormat')
  try {
    const madeFor = (timezone: string) => {
      made.mockClear()
      hourly(timezone)
      return made.mock.calls.length
    }
    expect(madeFor(spelling(1))).toBeGreaterThan(0)
    expect(madeFor(spelling(1))).toBe(0)
    for (let number = 2; number <= 400; number += 1) hourly(spelling(number))
    expect(madeFor(spelling(1))).toBeGreaterThan(0)
  } finally {
    made.mockRestore()
  }
})
