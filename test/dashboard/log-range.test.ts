import { afterEach, describe, expect, it, vi } from 'vitest'
import { fieldsOf, readRange, withSide } from '@/features/apps/log-range'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

afterEach(() => void vi.unstubAllEnvs())

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
  it('is the same for somebody in another time zone whom the address was passed on to', () => {
    vi.stubEnv('TZ', 'Asia/Tokyo')
    const address = withSide(withSide('', 0, '2026-03-01T21:00'), 1, '2026-03-01T22:30:05')
    expect(fieldsOf(address)).toEqual(['2026-03-01T21:00:00', '2026-03-01T22:30:05'])
    vi.stubEnv('TZ', 'America/Lima')
    expect(readRange(address, NOW)).toEqual({
      since: '2026-03-01T12:00:00.000Z',
      until: '2026-03-01T13:30:05.000Z',
    })
    expect(fieldsOf(address)).toEqual(['2026-03-01T07:00:00', '2026-03-01T08:30:05'])
    expect(fieldsOf(withSide(address, 1, ''))).toEqual(['2026-03-01T07:00:00', ''])
    expect([fieldsOf('24'), fieldsOf('own')]).toEqual([
      ['', ''],
      ['', ''],
    ])
  })
})
