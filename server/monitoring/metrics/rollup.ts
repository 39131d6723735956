import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { forgetAll } from '#server/kernel/forget'
import { addUp, STEPS, startOf } from './interval.ts'
import type { MetricRepository } from './repository.ts'

/** A start after a long time away adds up so many intervals at most per call. */
const MOST_AT_ONCE = 180

/**
 * Adds short intervals up to longer ones once those are over, and forgets what is past its time. Made to be
 * called again and again: what was added up before is not touched.
 */
export function createRollup({ db, clock, metrics }: { db: Db; clock: Clock; metrics: MetricRepository }) {
  const addUpTo = (from_s: number, to_s: number, now_s: number): void => {
    const done = metrics.latest(to_s)
    const first = done === null ? metrics.oldest(from_s) : done + to_s
    if (first === null) return
    let at = startOf(first, to_s)
    for (let count = 0; at + to_s <= now_s && count < MOST_AT_ONCE; at += to_s) {
      const parts = Map.groupBy(metrics.all(from_s, at, at + to_s), ({ subject }) => subject)
      if (parts.size === 0) continue
      count++
      db.tx(() => {
        for (const [subject, intervals] of parts) metrics.write(subject, to_s, addUp(at, intervals))
      })
    }
  }
  return async (): Promise<void> => {
    const now_s = Math.floor(clock.now() / 1000)
    addUpTo(10, 60, now_s)
    addUpTo(60, 3600, now_s)
    // After a long time away that is all that there is.
    for (const { step_s, kept_s } of STEPS) await forgetAll(() => metrics.prune(step_s, now_s - kept_s))
  }
}
