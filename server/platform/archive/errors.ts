export type ArchiveErrorCode =
  | 'not_gzip'
  | 'damaged'
  | 'unsafe'
  | 'too_large'
  | 'too_many_files'
  | 'empty'
  | 'aborted'

/**
 * An archive that was refused. The message says what is wrong with it and what to do, for the user who sent
 * it.
 */
export class ArchiveError extends Error {
  readonly code: ArchiveErrorCode
  constructor(code: ArchiveErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ArchiveError'
    this.code = code
  }
}

export const notGzip = () =>
  new ArchiveError(
    'not_gzip',
    'The archive is not a gzipped tar file. Pack the folder with: tar czf app.tar.gz --exclude .git .',
  )
export const damaged = (cause: unknown) =>
  new ArchiveError('damaged', 'The archive is damaged or incomplete. Pack it again, then upload it again.', {
    cause,
  })
export const unsafe = (reason: string) =>
  new ArchiveError(
    'unsafe',
    `The archive was refused, because ${reason}. Pack only the files and folders of the app.`,
  )
export const tooManyFiles = (max_files: number) =>
  new ArchiveError(
    'too_many_files',
    `The archive has more than ${max_files} files and folders. Leave out generated files and dependencies such as node_modules.`,
  )
export const tooLarge = (what: string, max_bytes: number) =>
  new ArchiveError(
    'too_large',
    `${what} larger than ${Math.floor(max_bytes / 1024 ** 2)} MiB. Leave out what the build does not need.`,
  )
