import { fileSentence } from '#server/kernel/file-faults'
import { ConfigError } from '#server/kernel/config'
import { LockedError } from '#server/kernel/lock'
import { DowngradeError, MigrationError } from '#server/kernel/migrate'
import { KeyFileError } from '#server/kernel/secrets'

/** A fault of the surroundings that the operator mends; the message is all they need. */
export class StartError extends Error {}

/** The sentence for what SQLite says about a file that it cannot work with. */
function databaseSentence(code: string, message: string, path: string): string {
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return `the database ${path} is damaged (${message}). Put the newest good copy of it in its place, such as one of the folder backups beside it; its companions -wal and -shm must go with the damaged file.`
  if (/^SQLITE_(BUSY|LOCKED)/.test(code))
    return `the database ${path} is held by another program. End what uses it.`
  if (/^SQLITE_FULL/.test(code)) return `the database ${path} cannot be written: its file system is full.`
  return `the database ${path} cannot be used: ${message} (${code}). Look at its rights, at those of its folder, and at the disk.`
}

/**
 * What to tell the operator about a start that failed, when it is theirs to mend; the error itself when it is
 * a fault of Portreeve.
 * @param database path of the database that a fault of SQLite is about.
 */
export function toStartError(error: unknown, database: string): unknown {
  if (
    [ConfigError, LockedError, DowngradeError, KeyFileError, MigrationError].some(
      (kind) => error instanceof kind,
    )
  )
    return new StartError((error as Error).message, { cause: error })
  const { code, message, name } = error as NodeJS.ErrnoException
  if (name === 'SqliteError' && typeof code === 'string')
    return new StartError(databaseSentence(code, message, database), { cause: error })
  const sentence = fileSentence(error)
  return sentence === undefined ? error : new StartError(sentence, { cause: error })
}
