import { join } from 'node:path'
import Database from 'better-sqlite3'

/** Longer than any look at the lock takes. */
export const START_PATIENCE_MS = 2000

/** Another process holds the data directory, or something else than the lock has its name. */
export class LockedError extends Error {}

/**
 * Locks of this process. Without a reference the garbage collector would close the file, and with it give the
 * lock back.
 */
const held = new Set<Database.Database>()

/**
 * Takes the data directory for this process, until it ends however it ends. An exclusive SQLite transaction
 * is a file lock of the operating system: unlike a pid file it cannot be left behind by kill -9 or a reboot.
 * @param patience_ms how long one that has it is waited for: a command that looks whether somebody has the directory
 * takes it for a moment, which must not end the server that just starts.
 * @returns a function that gives the directory back.
 */
export function lockDirectory(directory: string, patience_ms = 0): () => void {
  const lock = new Database(join(directory, 'lock'), { timeout: patience_ms })
  try {
    lock.pragma('journal_mode = DELETE')
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const { code = '' } = error as { code?: string }
    if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT')
      throw new LockedError(
        `${join(directory, 'lock')} is not the lock of Portreeve, although it has its name. Remove it while no Portreeve is running.`,
      )
    if (code !== 'SQLITE_BUSY') throw error
    throw new LockedError(
      `Another Portreeve is running on ${directory}. Stop it first, or set PORTREEVE_DATA_DIR to another folder.`,
    )
  }
  held.add(lock)
  return () => {
    held.delete(lock)
    lock.close()
  }
}
