import { apart } from '#server/kernel/standing'

/** Why a task did not go on by itself. */
export type Progress =
  /** There is more to do at once. */
  | 'more'
  /** There is more to do once somebody else gives way: a full connection, a budget that is used up. */
  | 'blocked'
  | 'done'

/** Work that is done in small steps. */
export interface Task {
  /** Does one step of a few milliseconds at most. */
  step(): Progress
}

/** Does the work of many in small slices, so that requests are answered in between. */
export interface Turns {
  /** Puts a task into the queue of its owner, unless it is there. */
  add(owner: string, task: Task): void
  remove(owner: string, task: Task): void
  stop(): void
}

export interface TurnsOptions {
  /** Milliseconds of a clock that never goes back. */
  now: () => number
  /** Calls a function later; the default is a timer of the process. */
  defer?: (fn: () => void, delay_ms: number) => void
}

/** Time that is worked in one piece, and at least the same time is left to others. */
const SLICE_MS = 5
/** After this blocked tasks are tried again. */
const BLOCKED_MS = 50

/** Apart from the request that set it off: what is done then is done for others, whose right is another one. */
const later = (fn: () => void, delay_ms: number): void => apart(() => void setTimeout(fn, delay_ms).unref())

/** Owners take turns, whatever each of them has asked for; a slice of work is followed by a rest as long. */
export function createTurns({ now, defer = later }: TurnsOptions): Turns {
  const ready = new Map<string, Set<Task>>()
  const blocked = new Map<string, Set<Task>>()
  let planned = false
  let waking = false
  let stopped = false

  const put = (queues: Map<string, Set<Task>>, owner: string, task: Task) => {
    const queue = queues.get(owner)
    if (queue) queue.add(task)
    else queues.set(owner, new Set([task]))
  }
  const take = (queues: Map<string, Set<Task>>, owner: string, task: Task) => {
    const queue = queues.get(owner)
    queue?.delete(task)
    if (queue?.size === 0) queues.delete(owner)
  }
  const plan = (delay_ms: number) => {
    if (planned || stopped) return
    planned = true
    defer(work, delay_ms)
  }
  const wake = () => {
    if (waking || stopped) return
    waking = true
    defer(() => {
      waking = false
      for (const [owner, tasks] of blocked) for (const task of tasks) put(ready, owner, task)
      blocked.clear()
      if (ready.size > 0) plan(0)
    }, BLOCKED_MS)
  }
  const stepOf = (owner: string) => {
    const queue = ready.get(owner)!
    const [task] = queue
    take(ready, owner, task!)
    const progress = task!.step()
    if (progress === 'more') put(ready, owner, task!)
    if (progress === 'blocked') {
      put(blocked, owner, task!)
      wake()
    }
  }
  function work(): void {
    planned = false
    const began = now()
    while (ready.size > 0 && now() - began < SLICE_MS) {
      for (const owner of [...ready.keys()]) {
        if (ready.has(owner)) stepOf(owner)
        if (now() - began >= SLICE_MS) break
      }
    }
    if (ready.size > 0) plan(Math.ceil(now() - began))
  }
  return {
    add(owner, task) {
      if (blocked.get(owner)?.has(task)) return
      put(ready, owner, task)
      plan(0)
    },
    remove(owner, task) {
      take(ready, owner, task)
      take(blocked, owner, task)
    },
    stop() {
      stopped = true
      ready.clear()
      blocked.clear()
    },
  }
}
