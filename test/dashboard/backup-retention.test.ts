import { describe, expect, it } from 'vitest'
import { keptOf, otherRules, retentionOf } from '../../dashboard/src/features/backups/retention.ts'

describe('what a schedule keeps', () => {
  it('changes in its number, and leaves the rules that the form does not show', () => {
    const before = { count: 7, weekly: 4, yearly: 2 }
    expect(keptOf(before)).toBe(7)
    expect(retentionOf('3', before)).toEqual({ count: 3, weekly: 4, yearly: 2 })
    expect(otherRules(before)).toBe('weekly 4, yearly 2')
  })
  it('has no number where the field is empty', () => {
    expect(keptOf({ days: 30 })).toBe(null)
    expect(retentionOf(null, { days: 30 })).toEqual({ days: 30 })
    expect(retentionOf('', { count: 7, days: 30 })).toEqual({ days: 30 })
  })
  it('is the number alone of a new one', () => {
    expect(retentionOf(7)).toEqual({ count: 7 })
    expect(otherRules(undefined)).toBe('')
  })
})
