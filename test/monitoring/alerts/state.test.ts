import { describe, expect, it } from 'vitest'
import { type AlertState, evaluate } from '#server/monitoring/alerts/state'

/** Runs a trace of one value per ten seconds; tells what was told, and when. */
function run(trace: readonly boolean[], for_s: number): { told: string[]; last: AlertState | undefined } {
  let state: AlertState | undefined
  const told: string[] = []
  for (const [at, is_bad] of trace.entries()) {
    const { next, transition } = evaluate(state, is_bad, for_s, at * 10_000)
    state = next
    if (transition) told.push(`${transition} at ${at * 10} s`)
  }
  return { told, last: state }
}
const bad = (count: number) => Array.from({ length: count }, () => true)
const well = (count: number) => Array.from({ length: count }, () => false)

describe('an alert', () => {
  it('fires at once without a delay, and is told once', () => {
    expect(run([...well(2), ...bad(50)], 0).told).toEqual(['fired at 20 s'])
  })
  it('waits for its delay', () => {
    const { told, last } = run(bad(7), 60)
    expect([told, last?.state]).toEqual([['fired at 60 s'], 'firing'])
  })
  it('is not told when it was bad for less than its delay', () => {
    expect(run([...bad(5), ...well(5), ...bad(5), ...well(5)], 60)).toEqual({ told: [], last: undefined })
  })
  it('is resolved at once the first time', () => {
    expect(run([...bad(3), ...well(3)], 0).told).toEqual(['fired at 0 s', 'resolved at 30 s'])
  })
  it('that flaps every ten seconds for an hour is told a few times, not hundreds', () => {
    const trace = Array.from({ length: 360 }, (_, at) => at % 2 === 0)
    expect(run(trace, 0).told.length).toBeLessThanOrEqual(4)
  })
  it('that flapped must be well for longer before that is believed', () => {
    const { told } = run([true, false, true, ...well(30)], 0)
    expect(told).toEqual(['fired at 0 s', 'resolved at 10 s', 'fired at 20 s', 'resolved at 150 s'])
  })
  it('is forgotten after a quiet hour', () => {
    expect(run([true, ...well(362)], 0).last).toBeUndefined()
  })
  it('that began while the clock was far ahead goes on once it is right', () => {
    const ahead = 10 * 365 * 86_400_000
    const trace = (state: AlertState, is_bad: boolean, for_s: number) => {
      const told: string[] = []
      let now: AlertState | undefined = state
      for (let at = 0; at <= 12; at += 1) {
        const { next, transition } = evaluate(now, is_bad, for_s, at * 10_000)
        now = next
        if (transition) told.push(`${transition} at ${at * 10} s`)
      }
      return told
    }
    const pending: AlertState = { state: 'pending', since_ms: ahead, well_since_ms: null, fired: 0 }
    expect(trace(pending, true, 60)).toEqual(['fired at 60 s'])
    const firing: AlertState = { state: 'firing', since_ms: ahead, well_since_ms: ahead, fired: 2 }
    expect(trace(firing, false, 60)).toEqual(['resolved at 120 s'])
  })
})
