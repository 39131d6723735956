import { ApiError, conflict } from '#server/kernel/errors'
import { ObjectStoreError } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from './archive/archive-error.ts'

/** What a client hears of a destination that does not answer as it should, or of an archive that is not what it was. */
export function asAnswer(error: unknown): unknown {
  if (error instanceof ArchiveError) return conflict(`${error.message} Restore another backup.`)
  if (!(error instanceof ObjectStoreError)) return error
  return error.code === 'full'
    ? new ApiError('DISK_FULL', 'The destination of backups is full.')
    : conflict(`The destination does not work: ${error.message}`)
}

/** Does something at a destination for a client that waits. */
export const answering = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw asAnswer(error)
  })
