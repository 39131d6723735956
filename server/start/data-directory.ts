import { own } from '#server/kernel/own'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { directories } from '#server/kernel/directories'
import { SPARE_FILE } from '#server/kernel/spare-file'
import { StartError } from '#server/start/start-faults'

const PRIVATE_FILES = ['portreeve.db', 'lock']
/** SQLite makes them beside its files and gives them the same rights. */
const PRIVATE_COMPANIONS = ['portreeve.db-wal', 'portreeve.db-shm', 'lock-journal']
/** What Portreeve and its installer put into the data directory, by the start of its name. */
const OURS = [
  ...PRIVATE_FILES,
  'initial-admin-password',
  'portreeve.env',
  'supervisor',
  'upgrade',
  SPARE_FILE,
  ...Object.values(directories('')).map((path) => path.split('/')[0]!),
]
const OTHERS = 0o077
const WRITABLE_BY_ALL = 0o002

const REASONS: Record<string, string> = {
  ENOTDIR: 'a part of its path is a file',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'its file system is read-only',
  ENOENT: 'nothing can be made there',
  ENOSPC: 'its file system is full',
  ELOOP: 'its path is a circle of links',
  ENAMETOOLONG: 'its path is too long',
}

/**
 * Makes a folder and those above it. `recursive` of Node never ends where the system says that a
 * folder above is missing while it is there, as in /proc.
 */
function makeDirectory(path: string, isRetry = false): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isRetry && dirname(path) !== path) {
      makeDirectory(dirname(path))
      return makeDirectory(path, true)
    }
    // Some file systems answer with their own fault before they say that the folder exists.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
      throw code === 'EEXIST' ? Object.assign(new Error(), { code: 'ENOTDIR' }) : error
  }
}

/** Takes the rights of other users away; on file systems that know no rights there is nothing to take. */
function makePrivate(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found || (found.mode & OTHERS) === 0 || found.uid !== process.getuid?.()) return
  try {
    chmodSync(path, found.mode & 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
  }
}

/** Where every user may write, one of them may have been there first: with a database, or code that is run from there. */
function requireOwn(path: string): void {
  if ((statSync(path).mode & WRITABLE_BY_ALL) === 0) return
  for (const name of [...OURS, ...PRIVATE_COMPANIONS]) {
    const found = lstatSync(join(path, name), { throwIfNoEntry: false })
    if (found && found.uid !== process.getuid?.())
      throw new StartError(
        `${join(path, name)} belongs to another user, and every user may write to ${path}. Set PORTREEVE_DATA_DIR to a folder that only this user may write.`,
      )
  }
}

function prepare(path: string): void {
  makeDirectory(path)
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  requireOwn(path)
  // A folder with something else in it, such as /tmp, belongs to others too, who must still get in.
  if (readdirSync(path).every((name) => OURS.some((own) => name.startsWith(own)))) makePrivate(path)
  for (const name of PRIVATE_FILES) {
    const file = join(path, name)
    // Never opened when it exists: closing it would give back the locks that this process has on
    // it.
    if (statSync(file, { throwIfNoEntry: false })) accessSync(file, constants.R_OK | constants.W_OK)
    else closeSync(openSync(file, 'wx', 0o600))
  }
  for (const name of [...PRIVATE_FILES, ...PRIVATE_COMPANIONS]) makePrivate(join(path, name))
  // Node makes the one with compiled code by itself, with the rights that the umask of whoever
  // calls leaves.
  const { keys, compiled } = directories(path)
  for (const folder of [keys, compiled]) {
    makeDirectory(folder)
    makePrivate(folder)
  }
}

/**
 * Makes the data directory when it is missing, and closes it and the database to other users of
 * the machine. Throws StartError with what the operator has to mend when it cannot be made or
 * written.
 */
export function prepareDataDirectory(path: string): void {
  try {
    prepare(path)
  } catch (error) {
    if (error instanceof StartError) throw error
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new StartError(
      `the data directory ${path} cannot be used: ${own(REASONS, code) ?? message}. Set PORTREEVE_DATA_DIR to a folder that this user may write.`,
    )
  }
}
