import { describe, expect, it } from 'vitest'
import { against, againstWords, tookThere } from '../../dashboard/src/features/deployments/durations.ts'

describe('the duration of a step', () => {
  const told = (ms: number | null, other: number | null) => {
    const found = against(ms, other)
    return found && againstWords(found, 'last good')
  }
  it('is told against another by how much longer or shorter it is', () => {
    expect(told(12_000, 9000)).toBe('3.0 s longer than last good')
    expect(told(60_000, 200_000)).toBe('2 min 20 s shorter than last good')
  })
  it('counts as the same within a second or a tenth', () => {
    expect([told(1500, 900), told(65_000, 60_000)]).toEqual(['like last good', 'like last good'])
    expect(told(67_000, 60_000)).toBe('7.0 s longer than last good')
  })
  it('stands alone where the other is not known', () => {
    expect([told(null, 1000), told(1000, null), against(1, undefined)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
  it('is not measured against a step that did not do its work there', () => {
    const steps = [
      { name: 'build', status: 'succeeded', duration_ms: 900 },
      { name: 'soak', status: 'skipped', duration_ms: 0 },
      { name: 'verify', status: 'failed', duration_ms: 5 },
    ]
    expect(['build', 'soak', 'verify', 'other'].map((name) => tookThere(steps, name))).toEqual([
      900,
      undefined,
      undefined,
      undefined,
    ])
  })
})
