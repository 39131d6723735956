import { own } from './own.ts'

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

/** Why a file cannot be used, such as `it is missing`; undefined for an error that the system did not give. */
export function fileReason(error: unknown): string | undefined {
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' ? own(REASONS, code) : undefined
}

/** The sentence for a file or folder that the system would not use; undefined for an error about none. */
export function fileSentence(error: unknown): string | undefined {
  const { path, syscall } = error as NodeJS.ErrnoException
  const reason = fileReason(error)
  // A connection that fails has a path too, where it is a socket.
  if (reason === undefined || typeof path !== 'string' || syscall === 'connect') return undefined
  return `${path} cannot be used: ${reason}.`
}
