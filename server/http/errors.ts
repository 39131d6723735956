import { isError } from 'h3'
import { ApiError, conflict, databaseLocked, type ErrorCode, ERRORS } from '#server/kernel/errors'
import type { Log } from '#server/kernel/log'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { unavailableAnswer } from '#server/platform/engine/asking'
import { EngineError } from '#server/platform/engine/engine'

/** Status, envelope and headers of an error response. */
export interface ErrorAnswer {
  status: number
  body: {
    error: {
      code: ErrorCode
      message: string
      details?: { path: string; message: string }[]
      request_id?: string
    }
  }
  headers: Record<string, string>
}

const BY_STATUS: Record<number, [ErrorCode, string]> = {
  400: ['BAD_REQUEST', 'The request cannot be read.'],
  401: ['UNAUTHORIZED', 'Log in, or send a valid token or API key.'],
  404: ['NOT_FOUND', 'There is no such path.'],
  405: ['METHOD_NOT_ALLOWED', 'This path does not accept this method.'],
  413: ['PAYLOAD_TOO_LARGE', 'The body is too large.'],
  415: ['UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.'],
  426: ['BAD_REQUEST', 'Open this path as a WebSocket.'],
}

/** Faults of the engine, of SQLite and of the file system that are the host's state, not a bug. */
function hostFault(error: unknown): ApiError | undefined {
  if (error instanceof EngineError && error.code === 'unavailable') return unavailableAnswer(error)
  if (error instanceof SecretUnreadableError) return conflict(error.message)
  const code = (error as { code?: unknown })?.code
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT')
    return new ApiError(
      'DISK_FULL',
      'The disk of the server is full. Free space, then try again; nothing was changed.',
    )
  if (typeof code === 'string' && /^SQLITE_(BUSY|LOCKED|READONLY|IOERR|CANTOPEN)/.test(code))
    return databaseLocked()
  if (typeof code === 'string' && /^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return new ApiError(
      'UNAVAILABLE',
      'The database cannot be read: its file is damaged, or its disk fails. Whoever runs this server finds more in its log.',
    )
  return undefined
}

/**
 * A call may wait for a host or for the engine after it has looked up what it names, which
 * somebody else may remove meanwhile: its row refers to nothing then, and none of it is written.
 */
const removedMeanwhile = (error: unknown): ApiError | undefined =>
  (error as { code?: unknown })?.code === 'SQLITE_CONSTRAINT_FOREIGNKEY'
    ? conflict('Something that this call names was removed in the meantime. Look again, then repeat it.')
    : undefined

/** The HTTP library wraps what middleware throws; the original is what counts. */
function isWrapped(thrown: unknown): thrown is { cause: unknown } {
  const { unhandled, cause } = (thrown ?? {}) as { unhandled?: boolean; cause?: unknown }
  return unhandled === true && cause !== undefined
}

/**
 * The one mapper of everything that can be thrown: our errors, 4xx of the HTTP library, faults of
 * the host, and the unknown, which is logged with the request id and says nothing else.
 */
export function toErrorAnswer(thrown: unknown, request_id: string, log: Log): ErrorAnswer {
  const error = isWrapped(thrown) ? thrown.cause : thrown
  const removed = removedMeanwhile(error)
  const known = error instanceof ApiError ? error : (removed ?? hostFault(error))
  if (known) {
    if (known.status >= 500 || removed)
      log.warn('Request refused', { request: request_id, code: known.code, error })
    return {
      status: known.status,
      body: {
        error: {
          code: known.code,
          message: known.message,
          ...(known.details ? { details: known.details } : {}),
        },
      },
      headers: {
        ...known.headers,
        // What is left of the body may never come.
        ...(known.status === 408 ? { Connection: 'close' } : {}),
        ...(known.status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
        ...(known.retry_after_s === undefined ? {} : { 'Retry-After': String(known.retry_after_s) }),
      },
    }
  }
  // Only errors of the HTTP library: an answer 404 of the engine, say, must not become one of ours.
  const mapped = isError(error) && !error.unhandled ? BY_STATUS[error.statusCode] : undefined
  if (mapped)
    return {
      status: ERRORS[mapped[0]].status,
      body: { error: { code: mapped[0], message: mapped[1] } },
      headers: {},
    }
  log.error('Request failed', {
    request: request_id,
    error: error instanceof Error ? error : String(error),
  })
  return {
    status: 500,
    body: {
      error: {
        code: 'INTERNAL_ERROR',
        message: 'Something went wrong on the server. Its log has the details under this request id.',
        request_id,
      },
    },
    headers: {},
  }
}

/** Headers of every response of the API. Source: security.md 2.17. */
export const SECURITY_HEADERS: Record<string, string> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'self'; frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
}
