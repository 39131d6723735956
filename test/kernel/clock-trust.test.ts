import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createClockTrust } from '#server/kernel/clock-trust'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

const HOUR_MS = 3_600_000
let kernel: TestKernel
let trust: ReturnType<typeof createClockTrust>
beforeEach(() => {
  kernel = createTestKernel()
  trust = createClockTrust(kernel)
})
afterEach(() => kernel.dispose())
const trustedAfter = (hours: number): boolean => {
  kernel.clock.advance(hours * HOUR_MS)
  return trust.isTrusted()
}

describe('a clock', () => {
  it('is trusted while it goes on as time does', () => {
    expect([trustedAfter(0), ...Array.from({ length: 100 }, () => trustedAfter(1))]).toEqual(
      Array(101).fill(true),
    )
  })
  it('that went ahead by more than a day is trusted a day later, also by a server that was started again', () => {
    expect([trustedAfter(0), trustedAfter(25)]).toEqual([true, false])
    trust = createClockTrust(kernel)
    expect(Array.from({ length: 24 }, () => trustedAfter(1))).toEqual(Array(24).fill(false))
    expect(trustedAfter(1)).toBe(true)
  })
  it('that goes ahead a second time while it is doubted is not trusted for another day', () => {
    expect([trustedAfter(0), trustedAfter(48), trustedAfter(1), trustedAfter(9000)]).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(Array.from({ length: 24 }, () => trustedAfter(1))).toEqual(Array(24).fill(false))
    expect(trustedAfter(1)).toBe(true)
  })
  it('is trusted by a server that runs now and then, for some hours a week', () => {
    expect(trustedAfter(0)).toBe(true)
    const starts = Array.from({ length: 4 }, () => {
      trust = createClockTrust(kernel)
      return [trustedAfter(168), trustedAfter(1)]
    })
    expect(starts).toEqual([
      [false, false],
      [true, true],
      [false, false],
      [true, true],
    ])
  })
  it('that is set right is trusted at once', () => {
    expect([trustedAfter(0), trustedAfter(9000), trustedAfter(-8990)]).toEqual([true, false, true])
  })
})
