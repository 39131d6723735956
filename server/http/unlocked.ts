import { setTimeout as pause } from 'node:timers/promises'
import type { Db } from '#server/kernel/db'
import { databaseLocked } from '#server/kernel/errors'

/** Another program has the database for so long at most before changes are refused. Source: security.md F23. */
const LONGEST_MS = 5_000
const LOOK_MS = 50

/**
 * Waits for the lock that another program holds on the database, as a copy of it made by hand does, with everybody else
 * served meanwhile: a statement that waited for it would hold up the one thread. Undefined where there is none; rejects
 * when it lasts too long: if each of those who waited learned that by writing, they would hold the thread up one after another.
 */
export function createUnlocked(
  db: Pick<Db, 'isLocked'>,
  longest_ms = LONGEST_MS,
): () => Promise<void> | undefined {
  let waiting: Promise<void> | undefined
  async function wait(): Promise<void> {
    for (let waited_ms = 0; waited_ms < longest_ms; waited_ms += LOOK_MS) {
      await pause(LOOK_MS)
      if (!db.isLocked()) return
    }
    throw databaseLocked()
  }
  return () => {
    if (!waiting && db.isLocked())
      waiting = wait().finally(() => {
        waiting = undefined
      })
    return waiting
  }
}
