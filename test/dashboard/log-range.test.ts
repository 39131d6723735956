import { describe, expect, it } from 'vitest'
import { readRange } from '@/features/apps/log-range'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

describe('the time that a log is shown of', () => {
  it('ends now for a number of hours, and has no bounds for the newest lines', () => {
    expect(readRange('24', NOW)).toEqual({ since: '2026-02-28T12:00:00.000Z' })
    expect([readRange('', NOW), readRange('own', NOW)]).toEqual([{}, {}])
  })
  it('may lack either side, and leaves out what is no time', () => {
    const at = '2026-03-01T10:00'
    const iso = new Date(at).toISOString()
    expect(readRange(`${at}~`, NOW)).toEqual({ since: iso })
    expect(readRange(`~${at}`, NOW)).toEqual({ until: iso })
    expect(readRange(`${at}~soon`, NOW)).toEqual({ since: iso })
  })
})
