import { setImmediate } from 'node:timers/promises'
import type { Db } from './db.ts'

/** Rows that are written by one transaction. */
export const WRITTEN_AT_ONCE = 50

/**
 * Writes for each of a list, in transactions of some each, with others served in between. A commit
 * waits for the disk, some milliseconds on many: one for each row would keep everybody waiting for
 * hundreds of them.
 * @param write reads again what it decides by: rows may have changed since the list was made.
 */
export async function writeInPieces<T>(
  db: Pick<Db, 'tx'>,
  list: readonly T[],
  write: (one: T) => void,
): Promise<void> {
  for (let from = 0; from < list.length; from += WRITTEN_AT_ONCE) {
    if (from > 0) await setImmediate()
    db.tx(() => list.slice(from, from + WRITTEN_AT_ONCE).forEach(write))
  }
}
