import { own } from './own.ts'

/** A value that differs between two states, for people: as text, or as JSON; null where there is none. */
export interface Difference {
  key: string
  before: string | null
  after: string | null
}

const text = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Differences of one field; those of a group, such as `build`, one by one. */
export function differencesOf(key: string, before: unknown, after: unknown): Difference[] {
  if (!isGroup(before) || !isGroup(after)) return [{ key, before: text(before), after: text(after) }]
  return differencesIn(before, after).map((one) => ({ ...one, key: `${key}.${one.key}` }))
}

/** What differs between two groups of fields, by name. */
export const differencesIn = (
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Difference[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((name) => ({ key: name, before: text(own(before, name)), after: text(own(after, name)) }))
    .filter((one) => one.before !== one.after)
    .sort((one, other) => one.key.localeCompare(other.key))
