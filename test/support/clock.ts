import type { Clock } from '#server/kernel/clock'

/** A clock that stands still until a test moves it. */
export interface TestClock extends Clock {
  advance(duration_ms: number): void
  /** Sets the wall clock alone, as an administrator or NTP would. */
  set(iso: string): void
}

export function createTestClock(iso = '2026-01-31T12:00:00.000Z'): TestClock {
  let wall_ms = Date.parse(iso)
  let running_ms = 0
  return {
    now: () => wall_ms,
    iso: () => new Date(wall_ms).toISOString(),
    monotonic_ms: () => running_ms,
    advance(duration_ms) {
      wall_ms += duration_ms
      running_ms += duration_ms
    },
    set: (next) => {
      wall_ms = Date.parse(next)
    },
  }
}
