/** Time as the domains see it, so that tests can set it. */
export interface Clock {
  /** Milliseconds since 1970 UTC; may jump when the host's clock is set. */
  now(): number
  /** ISO 8601 UTC with milliseconds. */
  iso(): string
  /** Milliseconds that never go back; for durations. */
  monotonic_ms(): number
}

/** What a clock is set back by at least; by less it is put right all the time. */
export const SET_BACK_MS = 60_000

/** The same point in time with milliseconds, which is what every answer has: the engine tells nanoseconds. */
export const inMilliseconds = (at: string): string => new Date(at).toISOString()

export const systemClock: Clock = {
  now: () => Date.now(),
  iso: () => new Date().toISOString(),
  monotonic_ms: () => performance.now(),
}
