import { own } from '#server/kernel/own'
import { ConfigError } from '#server/kernel/config'
import { LockedError } from '#server/kernel/lock'
import { DowngradeError, MigrationError } from '#server/kernel/migrate'
import { KeyFileError } from '#server/kernel/secrets'

/** A fault of the surroundings that the operator mends; the message is all they need. */
export class StartError extends Error {}

/** What the system's words for a file or folder that cannot be used mean. */
const REASONS: Record<string, string> = {
  EACCES: 'this user may not use it',
  EPERM: 'this user may not use it',
  ENOENT: 'it is missing',
  ENOTDIR: 'a part of its path is a file',
  EISDIR: 'it is a folder',
  ERR_FS_EISDIR: 'it is a folder',
  EEXIST: 'something else has its name',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its file system is full',
  EDQUOT: 'the quota of this user is used up',
  EIO: 'its disk reports a fault',
  ELOOP: 'its path is a circle of links',
  ENAMETOOLONG: 'its path is too long',
  EMFILE: 'too many files are open',
}

/** The sentence for what SQLite says about a file that it cannot work with. */
function databaseSentence(code: string, message: string, path: string): string {
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return `the database ${path} is damaged (${message}). Put the newest good copy of it in its place, such as one of the folder backups beside it; its companions -wal and -shm must go with the damaged file.`
  if (/^SQLITE_(BUSY|LOCKED)/.test(code))
    return `the database ${path} is held by another program. End what uses it.`
  if (/^SQLITE_FULL/.test(code)) return `the database ${path} cannot be written: ${REASONS.ENOSPC}.`
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
  const { code, path, syscall, message, name } = error as NodeJS.ErrnoException
  if (name === 'SqliteError' && typeof code === 'string')
    return new StartError(databaseSentence(code, message, database), { cause: error })
  // Of files only: a connection that fails has no place in the data directory.
  const reason = typeof code === 'string' ? own(REASONS, code) : undefined
  if (reason !== undefined && typeof path === 'string' && syscall !== 'connect')
    return new StartError(`${path} cannot be used: ${reason}.`, { cause: error })
  return error
}
