import { fieldOfMoment, momentOf } from '@/lib/format'

const HOUR_MS = 3_600_000

/** Times that a log is looked through for, as they stand in the address. */
export const RANGES = [
  { value: '', label: 'Newest lines' },
  { value: '1', label: 'Last hour' },
  { value: '24', label: 'Last day' },
  { value: '168', label: 'Last week' },
  { value: 'own', label: 'From … to …' },
]
export interface Range {
  since?: string
  until?: string
}

/** Reads `24` (hours up to now) and `2026-03-01T12:00:00.000Z~…`, either side of which may be missing. */
export function readRange(text: string, now: number): Range {
  if (text === '' || text === 'own') return {}
  if (/^\d+$/.test(text)) return { since: new Date(now - Number(text) * HOUR_MS).toISOString() }
  const [from, to] = text.split('~')
  const [since, until] = [momentOf(from), momentOf(to)]
  return { ...(since ? { since } : {}), ...(until ? { until } : {}) }
}

const sidesOf = (text: string): string[] => (text.includes('~') ? text.split('~') : ['', ''])
/** What the two fields show of a range, on the reader's own clock. */
export const fieldsOf = (text: string): string[] => sidesOf(text).map(fieldOfMoment)
/** A range with another side. It holds moments, which are the same for whoever its address is passed on to. */
export function withSide(text: string, side: number, typed: string): string {
  const sides = sidesOf(text)
  sides[side] = momentOf(typed) ?? ''
  return sides.join('~')
}
