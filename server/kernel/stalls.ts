import { channel } from 'node:diagnostics_channel'
import { CALLS, type Calls } from './calls.ts'
import type { Log } from './log.ts'

/** The main thread answered nobody for a while. */
export interface Stall {
  /** How long, as far as it was seen. */
  stalled_ms: number
  /** Of it, the time that the thread itself worked; the rest it waited for a disk or for the machine. */
  worked_ms: number
  /** What was under way then, one of which it was. */
  calls: string[]
}

/** Where stalls are told within the process, for tests and tools that are loaded beside the product. */
export const STALLS = channel('portreeve:stall')

const BEAT_MS = 50
/** Work in one piece that is longer is told; the bar for all synchronous work. */
const TOLD_MS = 50
/** An operator hears of those that a client notices. */
const LOGGED_MS = 250
const BUSY = 'The main thread was busy and answered nobody'
/** Whoever is told that it was busy looks for work of Portreeve that there was none of. */
const KEPT_WAITING =
  'The main thread answered nobody: it waited for a processor or a disk that others kept busy'

interface WatchOptions {
  log: Log
  calls?: Calls
  now?: () => number
  /** Processor time of the main thread so far. */
  worked?: () => number
  /** How often it is looked. */
  beat_ms?: number
}

/** Processor time that the main thread has used so far, in milliseconds. */
export const workedOfThread = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/**
 * Looks whether the main thread comes to answer, by a timer that must not be late.
 * @returns a function that ends the watch.
 */
export function watchStalls(options: WatchOptions): () => void {
  const { log, calls = CALLS, now = () => performance.now(), worked = workedOfThread } = options
  const beat_ms = options.beat_ms ?? BEAT_MS
  let last = now()
  let last_worked = worked()
  const timer = setInterval(() => {
    const [at, work] = [now(), worked()]
    const stalled_ms = Math.round(at - last - beat_ms)
    const worked_ms = Math.round(work - last_worked)
    if (stalled_ms > TOLD_MS) {
      const stall: Stall = { stalled_ms, worked_ms, calls: calls.since(last) }
      STALLS.publish(stall)
      if (stalled_ms > LOGGED_MS)
        log.warn(worked_ms * 2 < stalled_ms ? KEPT_WAITING : BUSY, {
          stalled_ms,
          worked_ms,
          calls: stall.calls.join(', ') || 'nothing that has a name',
        })
    }
    last = at
    last_worked = work
  }, beat_ms)
  timer.unref()
  return () => clearInterval(timer)
}
