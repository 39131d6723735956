/** How one subject of a rule fares. No state at all means that it is well. */
export interface AlertState {
  state: 'pending' | 'firing' | 'resolved'
  /** Times in milliseconds since 1970. */
  since_ms: number
  /** Since when the condition has been well again; null while it is not. */
  well_since_ms: number | null
  /** How often it fired since it was last quiet for an hour. */
  fired: number
}
export interface Evaluation {
  /** What holds from now on; undefined: all is well and nothing is remembered. */
  next: AlertState | undefined
  /** What has to be told. */
  transition: 'fired' | 'resolved' | undefined
}

/** A resolved alert is remembered so long, so that flapping is noticed. */
const QUIET_MS = 3_600_000
/** The second, third … time it must be well for longer before that is believed. */
const STEADY_MS = 60_000
const LONGEST_STEADY_MS = 1_800_000

/** What a clock that was far ahead wrote down holds from now on: else nothing would change until then. */
const notAhead = (state: AlertState, now_ms: number): AlertState => ({
  ...state,
  since_ms: Math.min(state.since_ms, now_ms),
  well_since_ms: state.well_since_ms === null ? null : Math.min(state.well_since_ms, now_ms),
})

/**
 * The state machine of an alert: well, pending for `for_s`, firing, resolved. What fires again and again is
 * resolved later each time, so that flapping sends few messages instead of a storm.
 */
export function evaluate(
  known: AlertState | undefined,
  is_bad: boolean,
  for_s: number,
  now_ms: number,
): Evaluation {
  const state = known && notAhead(known, now_ms)
  const fire = (fired: number): Evaluation => ({
    next: { state: 'firing', since_ms: now_ms, well_since_ms: null, fired: fired + 1 },
    transition: 'fired',
  })
  if (!state || state.state === 'resolved') {
    const fired = state?.fired ?? 0
    if (is_bad)
      return for_s === 0
        ? fire(fired)
        : {
            next: { state: 'pending', since_ms: now_ms, well_since_ms: null, fired },
            transition: undefined,
          }
    const is_quiet = !state || now_ms - state.since_ms >= QUIET_MS
    return { next: is_quiet ? undefined : state, transition: undefined }
  }
  if (state.state === 'pending') {
    if (!is_bad) {
      const next: AlertState | undefined =
        state.fired > 0
          ? { state: 'resolved', since_ms: now_ms, well_since_ms: null, fired: state.fired }
          : undefined
      return { next, transition: undefined }
    }
    return now_ms - state.since_ms >= for_s * 1000
      ? fire(state.fired)
      : { next: state, transition: undefined }
  }
  if (is_bad) return { next: { ...state, well_since_ms: null }, transition: undefined }
  const well_since_ms = state.well_since_ms ?? now_ms
  const steady_ms = state.fired > 1 ? Math.min(STEADY_MS * 2 ** (state.fired - 1), LONGEST_STEADY_MS) : 0
  return now_ms - well_since_ms >= steady_ms
    ? {
        next: { state: 'resolved', since_ms: now_ms, well_since_ms: null, fired: state.fired },
        transition: 'resolved',
      }
    : { next: { ...state, well_since_ms }, transition: undefined }
}
