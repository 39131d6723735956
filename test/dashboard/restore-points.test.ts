import { expect, it } from 'vitest'
import { pointWord, sizeWord, timeWord } from '../../dashboard/src/features/backups/points.ts'

type Backup = Parameters<typeof sizeWord>[0]
const MIB = 1024 ** 2
const backup = {
  created_at: '2026-11-22T12:00:00.000Z',
  size_bytes: 12 * MIB,
  original_bytes: 40 * MIB,
  duration_ms: 2000,
  verification: null,
} as Backup

it('a point to go back to is told with its size, and with how long it took on trial', () => {
  expect(pointWord(backup)).toMatch(/2026.*, 12 MiB$/)
  expect(sizeWord(backup)).toBe('12 MiB packed, 40 MiB unpacked')
  expect(timeWord(backup)).toBe('not tried yet; the backup took 2.0 s')
  const verification = { status: 'succeeded', duration_ms: 90_000 } as NonNullable<Backup['verification']>
  expect(timeWord({ ...backup, verification })).toBe('1 min 30 s on trial')
  expect(timeWord({ ...backup, verification: { ...verification, status: 'failed' } })).toContain('not tried')
  const old = { ...backup, size_bytes: null, duration_ms: null }
  expect([sizeWord(old), timeWord(old)]).toEqual(['not known', 'not known'])
})
