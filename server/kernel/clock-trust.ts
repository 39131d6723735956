import type { Clock } from './clock.ts'
import type { Db } from './db.ts'
import type { Log } from './log.ts'
import { createMeta } from './meta.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Of a time when backups alone asked. */
const KEY = 'backup_clock'

interface Seen {
  /** When somebody looked last; written down once an hour. */
  at_ms: number
  /** When it was found to have gone ahead; absent while it is trusted. */
  doubted_ms?: number
}
/** Whether the clock may decide what is too old to be kept. */
export interface ClockTrust {
  /** Looks at the clock; to be called again and again. */
  isTrusted(): boolean
}

/**
 * A clock that goes ahead by more than a day is wrong, or Portreeve was not running for so long. Nobody can tell which,
 * and a wrong one makes everything too old at once: so for a day nothing is deleted by its age, in which somebody
 * may set it right. Where that time has really passed, it is all the same a day later.
 */
export function createClockTrust({
  db,
  clock,
  log,
}: {
  db: Db
  clock: Clock
  log: Pick<Log, 'warn'>
}): ClockTrust {
  const meta = createMeta(db)
  const stored = meta.get(KEY)
  let seen: Seen | undefined = stored === undefined ? undefined : (JSON.parse(stored) as Seen)
  const note = (next: Seen) => meta.set(KEY, JSON.stringify((seen = next)))
  // What lies between two looks of one process is no time in which Portreeve was not running.
  let has_looked = false
  return {
    isTrusted() {
      const now = clock.now()
      if (seen === undefined) note({ at_ms: now })
      const { at_ms, doubted_ms } = seen!
      const is_doubted_anew = doubted_ms === undefined || has_looked
      has_looked = true
      const ahead_ms = now - at_ms
      // Set right again.
      if (ahead_ms < 0) note({ at_ms: now })
      else if (ahead_ms > DAY_MS && is_doubted_anew) {
        note({ at_ms: now, doubted_ms: now })
        log.warn(
          'The clock went ahead by more than a day, or Portreeve was not running for so long. Nothing is deleted by its age for a day: set the clock if it is wrong.',
          { hours: Math.floor(ahead_ms / HOUR_MS) },
        )
      } else if (doubted_ms !== undefined && now - doubted_ms > DAY_MS) note({ at_ms: now })
      else if (ahead_ms > HOUR_MS) note({ ...seen!, at_ms: now })
      return seen!.doubted_ms === undefined
    },
  }
}
