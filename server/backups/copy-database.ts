import type { Db } from '#server/kernel/db'

/** Readers of a folder wait for nothing: pages are copied in groups, with pauses for requests in between. */
const PAGES_AT_ONCE = 200

/** A consistent copy of the database while it goes on working, as one file. */
export async function copyDatabase(db: Db, path: string, signal: AbortSignal): Promise<void> {
  await db.raw.backup(path, {
    progress: () => {
      signal.throwIfAborted()
      return PAGES_AT_ONCE
    },
  })
}
