import { createBudget } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import { createTimeHeld } from '#server/kernel/time-held'

/** Checks that run at once; one that hangs holds its place for its time limit. */
const AT_ONCE = 30
/** Of these, the checks of one project: where all of them hang, those of others still have their turn. */
const AT_ONCE_IN_PROJECT = 3
/** Places for projects whose checks held few of late: somebody may have many projects in which all of them hang. */
const KEPT_FOR_QUICK = 10
/** A fifth of a place, all the time. */
const QUICK_MS = 80_000
/** Looks that begin: each is a request and a few rows, and ten thousand checks every ten seconds are no work for this process. */
const PACE = { at_once: 100, per_second: 50 }
/** What a look counts for at least, however quickly it ends. */
const LEAST_MS = 100
/** Checks of one project that are read at once. */
export const READ_AT_ONCE = 30

/** A check that is due. */
export interface Due {
  id: string
  project_id: string
}

/** Chooses among the checks that are due, so that what hangs in some projects delays nothing in others. */
export function createLine(clock: Pick<Clock, 'monotonic_ms'>) {
  const held = createTimeHeld(clock)
  const pace = createBudget(clock, PACE)
  const under_way = new Map<string, number>()
  let waiting = new Map<string, string[]>()
  /** Those of which more may be due than was read. */
  let full: string[] = []
  let count = 0

  function next(): string | undefined {
    let best: { project_id: string; held_ms: number } | undefined
    for (const project_id of waiting.keys()) {
      if ((under_way.get(project_id) ?? 0) >= AT_ONCE_IN_PROJECT) continue
      const held_ms = held.of(project_id)
      if (!best || held_ms < best.held_ms) best = { project_id, held_ms }
    }
    const places = best && best.held_ms > QUICK_MS ? AT_ONCE - KEPT_FOR_QUICK : AT_ONCE
    return count < places ? best?.project_id : undefined
  }

  return {
    /** What is due now, in order, at most `READ_AT_ONCE` of each project. */
    fill(due: readonly Due[]): void {
      held.prune()
      waiting = new Map()
      for (const { id, project_id } of due) {
        const line = waiting.get(project_id)
        if (line) line.push(id)
        else waiting.set(project_id, [id])
      }
      full = [...waiting].flatMap(([project_id, line]) => (line.length >= READ_AT_ONCE ? [project_id] : []))
    },
    /** Whether more of a project may be due than was read, and all of it that was read has begun. */
    isToBeRead: (): boolean => full.some((project_id) => !waiting.has(project_id)),
    /** Whether the next check waits for nothing but its time: come again in a moment. */
    isPaced: (): boolean => !pace.isLeft() && next() !== undefined,
    /** Takes the next check that has a place; undefined while there is none. Call `leave` when it has ended. */
    take(): { id: string; leave(): void } | undefined {
      const project_id = pace.isLeft() ? next() : undefined
      if (project_id === undefined) return undefined
      pace.spend(1)
      const line = waiting.get(project_id)!
      const id = line.shift()!
      if (line.length === 0) waiting.delete(project_id)
      const begun_ms = clock.monotonic_ms()
      under_way.set(project_id, (under_way.get(project_id) ?? 0) + 1)
      count += 1
      return {
        id,
        leave() {
          count -= 1
          held.add(project_id, Math.max(clock.monotonic_ms() - begun_ms, LEAST_MS))
          const left = under_way.get(project_id)! - 1
          if (left === 0) under_way.delete(project_id)
          else under_way.set(project_id, left)
        },
      }
    },
  }
}
