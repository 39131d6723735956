import { randomUUID } from 'node:crypto'
import type { Clock } from './clock.ts'

/** A point in time to measure from; may be stored, as in the state of a job. */
export interface Mark {
  running_ms: number
  wall_ms: number
  /** Whose `running_ms` it is: that of another process began at another time. */
  process: string
}
const PROCESS = randomUUID()

export const markNow = (clock: Clock): Mark => ({
  running_ms: clock.monotonic_ms(),
  wall_ms: clock.now(),
  process: PROCESS,
})

/**
 * Milliseconds since a mark, also when the host's clock was set meanwhile. Only of a mark from before a restart
 * the wall clock has to tell, and then never less than nothing.
 */
export function sinceMark(clock: Clock, mark: Mark): number {
  const elapsed_ms =
    mark.process === PROCESS ? clock.monotonic_ms() - mark.running_ms : clock.now() - mark.wall_ms
  return Math.max(0, Math.round(elapsed_ms))
}
