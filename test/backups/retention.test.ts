import { describe, expect, it, vi } from 'vitest'
import { expiries, selectExpired } from '#server/backups/retention'

const DAY_MS = 86_400_000
const NOW = Date.parse('2026-03-15T12:00:00.000Z')
/** One backup at 03:00 UTC of each of the last so many days, newest first. */
const daily = (days: number) =>
  Array.from({ length: days }, (_, age) => ({
    id: String(age),
    created_at: new Date(Date.parse('2026-03-15T03:00:00.000Z') - age * DAY_MS).toISOString(),
  }))
const kept = (days: number, rules: object, timezone = 'UTC') => {
  const all = daily(days)
  const gone = new Set(selectExpired(all, rules, { now: NOW, timezone }))
  return all.filter((backup) => !gone.has(backup)).map(({ created_at }) => created_at.slice(0, 10))
}

describe('retention', () => {
  it('keeps everything without a rule', () => {
    expect(kept(500, {})).toHaveLength(500)
  })
  it('keeps the newest so many', () => {
    expect(kept(30, { count: 3 })).toEqual(['2026-03-15', '2026-03-14', '2026-03-13'])
  })
  it('keeps those of the last days', () => {
    expect(kept(30, { days: 2 })).toEqual(['2026-03-15', '2026-03-14'])
  })
  it('keeps grandfathers, fathers and sons', () => {
    expect(kept(800, { daily: 3, weekly: 3, monthly: 3, yearly: 2 })).toEqual([
      '2026-03-15',
      '2026-03-14',
      '2026-03-13',
      '2026-03-08',
      '2026-03-01',
      '2026-02-28',
      '2026-01-31',
      '2025-12-31',
    ])
  })
  it('tells until when its age keeps each, and nothing where a number does', () => {
    const ends = (rules: object) =>
      [...expiries(daily(20), rules, { timezone: 'UTC' }).values()].map((end) => end?.slice(0, 10) ?? null)
    expect(ends({ count: 3 })).toEqual(Array.from({ length: 20 }, () => null))
    expect(ends({ days: 7 }).slice(0, 2)).toEqual(['2026-03-22', '2026-03-21'])
    expect(ends({ days: 7, count: 1 }).slice(0, 2)).toEqual([null, '2026-03-21'])
    expect(ends({ yearly: 10_000 })[0]).toBeNull()
    const grown = ends({ daily: 7, monthly: 12 })
    expect([grown[0], grown[1], grown[15]]).toEqual(['2027-03-01', '2026-03-21', '2027-02-01'])
  })
  it('never deletes the newest good one, however old it is', () => {
    const old = [{ id: 'old', created_at: '2020-01-01T00:00:00.000Z' }]
    expect(selectExpired(old, { days: 1 }, { now: NOW, timezone: 'UTC' })).toEqual([])
    const two = [...old, { id: 'older', created_at: '2019-01-01T00:00:00.000Z' }]
    expect(selectExpired(two, { days: 1 }, { now: NOW, timezone: 'UTC' }).map(({ id }) => id)).toEqual([
      'older',
    ])
  })
  it('looks a zone up once, however many backups and rules there are', () => {
    const asked = vi.spyOn(Intl, 'DateTimeFormat')
    try {
      const rules = { daily: 100, weekly: 100, monthly: 100, yearly: 100 }
      const zone = { now: NOW, timezone: 'Europe/Berlin' }
      selectExpired(daily(500), rules, zone)
      expiries(daily(500), rules, zone)
      expect(asked).toHaveBeenCalledTimes(2)
    } finally {
      asked.mockRestore()
    }
  })
  it('knows days by the clock of the zone', () => {
    const around_midnight = [
      { id: 'b', created_at: '2026-03-15T01:00:00.000Z' },
      { id: 'a', created_at: '2026-03-14T23:00:00.000Z' },
    ]
    const expired = (timezone: string) =>
      selectExpired(around_midnight, { daily: 5 }, { now: NOW, timezone }).map(({ id }) => id)
    expect([expired('UTC'), expired('America/New_York')]).toEqual([[], ['a']])
  })
})
