import { ApiError } from '#server/kernel/errors'
import type { ComposeError } from './issues.ts'

/** The 422 of a compose file that is not taken: every issue with its path below the field that held the file. */
export function invalidCompose(field: string, error: ComposeError): ApiError {
  const details = error.issues.map(({ path, message }) => ({
    path: path === '' ? field : `${field}.${path}`,
    message,
  }))
  const [first] = details
  return new ApiError('VALIDATION_ERROR', first ? `${first.path}: ${first.message}` : error.message, details)
}
