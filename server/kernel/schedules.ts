import { setImmediate } from 'node:timers/promises'
import { Cron } from 'croner'
import { CALLS } from './calls.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

export interface Schedule {
  /** `domains.check`. */
  name: string
  cron: string
  task: string
  run(): unknown
}

/**
 * When a pattern matches next after a time, in UTC; undefined when it never does. Throws for a bad pattern.
 * UTC is an offset here and not a zone: for a zone, the tables of all languages would be loaded, 8 MB.
 */
export const nextRun = (cron: string, after_ms: number): number | undefined =>
  new Cron(cron, { utcOffset: 0, paused: true }).nextRun(new Date(after_ms))?.getTime()

/**
 * Schedules of the code. Somebody wakes a task every minute; what is due then runs, once for all the times
 * that have passed, and never beside itself.
 */
export function createSchedules(schedules: readonly Schedule[], clock: Clock, log: Log) {
  const entries = schedules.map((schedule) => ({
    ...schedule,
    due_ms: nextRun(schedule.cron, clock.now()),
    running: false,
  }))
  let seen_ms = clock.now()
  /**
   * A clock that was far ahead has put what is due far ahead, too: nothing would run until then. What ran a moment
   * before the clock was set back by less than its period does not run again.
   */
  const mendAhead = (now_ms: number) => {
    if (now_ms < seen_ms)
      for (const entry of entries) {
        const next_ms = nextRun(entry.cron, now_ms)
        const later_ms = next_ms === undefined ? undefined : nextRun(entry.cron, next_ms)
        if (entry.due_ms !== undefined && later_ms !== undefined && entry.due_ms > later_ms)
          entry.due_ms = next_ms
      }
    seen_ms = now_ms
  }
  let turn: Promise<void> = Promise.resolve()
  /** Everything is due at the same second of a minute. One begins at a time, and others come in between. */
  const inTurn = (): Promise<void> => {
    const mine = turn
    turn = mine.then(() => setImmediate())
    return mine
  }
  const runOne = async (entry: (typeof entries)[number]) => {
    entry.running = true
    entry.due_ms = nextRun(entry.cron, clock.now())
    await inTurn()
    try {
      return await CALLS.run(entry.name, () => entry.run())
    } catch (error) {
      log.error('Scheduled work failed', { schedule: entry.name, error })
      return undefined
    } finally {
      entry.running = false
    }
  }
  return {
    /** Runs what is due of a task, and says what came of each. */
    async wake(task: string): Promise<Record<string, unknown>> {
      mendAhead(clock.now())
      const due = entries.filter(
        (entry) =>
          entry.task === task && !entry.running && entry.due_ms !== undefined && entry.due_ms <= clock.now(),
      )
      return Object.fromEntries(
        await Promise.all(due.map(async (entry) => [entry.name, await runOne(entry)] as const)),
      )
    },
  }
}
export type Schedules = ReturnType<typeof createSchedules>
