/** An archive that is not what was written, or that cannot be opened. `message` is fit for the user. */
export class ArchiveError extends Error {
  readonly code: 'damaged' | 'missing' | 'key_needed' | 'wrong_key'
  constructor(code: ArchiveError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ArchiveError'
    this.code = code
  }
}
