import type { Clock } from '../clock.ts'
import type { Db } from '../db.ts'
import type { Log } from '../log.ts'

/** What the runner of jobs works with. */
export interface JobsOptions {
  db: Db
  clock: Clock
  log: Log
  /** Sizes of the pools that steps name. */
  pools: Record<string, number>
  /** Jobs that run at once on the installation. */
  max_running?: number
  /** Waits between attempts; tests pass one that does not. */
  pause?: (duration_ms: number, signal: AbortSignal) => Promise<void>
  /** For fault experiments: called at `<kind>.<step>` `before` and `after`. */
  fault?: (point: string, when: 'before' | 'after') => void
}
