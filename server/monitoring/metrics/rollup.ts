import { setImmediate } from 'node:timers/promises'
import type { Clock } from '#server/kernel/clock'
import type { ClockTrust } from '#server/kernel/clock-trust'
import type { Db } from '#server/kernel/db'
import { forgetAll } from '#server/kernel/forget'
import { addUp, type Interval, STEPS, startOf } from './interval.ts'
import type { MetricRepository } from './repository.ts'

/** A start after a long time away adds up so many intervals at most per call. */
const MOST_AT_ONCE = 180
/** Subjects whose parts are read in one piece: an hour of each is 60 rows. */
const READ_AT_ONCE = 20

/**
 * Adds short intervals up to longer ones once those are over, and forgets what is past its time. Made to be
 * called again and again: what was added up before is not touched.
 */
export function createRollup({
  db,
  clock,
  clock_trust,
  metrics,
}: {
  db: Db
  clock: Clock
  clock_trust: ClockTrust
  metrics: MetricRepository
}) {
  /** The longer interval of every subject that has parts of it; others are served between pieces of the reading. */
  async function sumsOf(from_s: number, at: number, end: number): Promise<[number, Interval][]> {
    const sums: [number, Interval][] = []
    for (const subject of metrics.subjects(from_s, at, end)) {
      sums.push([subject, addUp(at, metrics.range(subject, from_s, at, end))])
      if (sums.length % READ_AT_ONCE === 0) await setImmediate()
    }
    return sums
  }
  async function addUpTo(from_s: number, to_s: number, now_s: number): Promise<void> {
    const done = metrics.latest(to_s, now_s)
    let from = done === null ? 0 : done + to_s
    for (let count = 0; count < MOST_AT_ONCE; count += 1) {
      // Time in which nothing was measured is passed over, however long it is.
      const next = metrics.oldest(from_s, from)
      if (next === null) return
      const at = startOf(next, to_s)
      from = at + to_s
      if (from > now_s) return
      const sums = await sumsOf(from_s, at, from)
      // All of an interval or nothing, since the latest one says what is done. A subject may have gone meanwhile.
      db.tx(() => {
        for (const [subject, sum] of sums) if (metrics.isThere(subject)) metrics.write(subject, to_s, sum)
      })
      await setImmediate()
    }
  }
  return async (): Promise<void> => {
    const now_s = Math.floor(clock.now() / 1000)
    await addUpTo(10, 60, now_s)
    await addUpTo(60, 3600, now_s)
    if (!clock_trust.isTrusted()) return
    // After a long time away that is all that there is.
    for (const { step_s, kept_s } of STEPS) await forgetAll(() => metrics.prune(step_s, now_s - kept_s))
  }
}
