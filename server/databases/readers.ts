/** A program that reads a database again and again is one line of the audit log for so long. */
const TOLD_FOR_MS = 10 * 60_000
const MOST = 1000

/**
 * Who was told lately to have read which database.
 * @param now milliseconds that never go back: a clock that is set back would have them known until it is there again.
 */
export function createReaders(now: () => number) {
  const told = new Map<string, number>()
  return {
    /** Whether this reader was told already; from now on they are. */
    isKnown(user_id: string, database_id: string): boolean {
      const key = `${user_id} ${database_id}`
      const known = (told.get(key) ?? Number.NEGATIVE_INFINITY) > now() - TOLD_FOR_MS
      if (known) return true
      if (told.size >= MOST) told.clear()
      told.set(key, now())
      return false
    },
  }
}
