/**
 * The one table of error codes. Clients branch on `code`; messages may change between versions.
 * Source: spec.md section 7 and api.md "Conventions".
 */
export const ERRORS = {
  BAD_REQUEST: {
    status: 400,
    summary: 'The request cannot be read: malformed JSON, query or header.',
  },
  UNAUTHORIZED: { status: 401, summary: 'Missing, invalid or expired token or API key.' },
  INVALID_CREDENTIALS: {
    status: 401,
    summary: 'Wrong email, password or code, at login or where a change is confirmed by them.',
  },
  TOTP_REQUIRED: {
    status: 401,
    summary: 'Two-factor authentication is on and no `totp_code` was sent.',
  },
  FORBIDDEN: { status: 403, summary: 'The role of the authenticated user lacks permission.' },
  PASSWORD_CHANGE_REQUIRED: {
    status: 403,
    summary: 'The generated first password must be changed before anything else.',
  },
  CSRF_INVALID: {
    status: 403,
    summary: 'A cookie session needs a valid `X-CSRF-Token` and a same-origin `Origin`.',
  },
  NOT_FOUND: {
    status: 404,
    summary: 'The resource does not exist, or the caller may not know that it does.',
  },
  METHOD_NOT_ALLOWED: { status: 405, summary: 'The path exists, the method does not.' },
  REQUEST_TIMEOUT: { status: 408, summary: 'The body of the request did not arrive in time.' },
  CONFLICT: { status: 409, summary: 'A duplicate name, or a state that does not allow this.' },
  PRECONDITION_FAILED: {
    status: 412,
    summary: 'What the caller says it has read was changed since; nothing was done.',
  },
  PAYLOAD_TOO_LARGE: { status: 413, summary: 'The body is larger than the endpoint accepts.' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    summary: 'The body is not of the content type that the endpoint accepts.',
  },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    summary: 'The `Range` begins behind the end; `Content-Range` says how many bytes there are.',
  },
  VALIDATION_ERROR: { status: 422, summary: 'A field is wrong; `details` lists every one.' },
  RATE_LIMITED: { status: 429, summary: 'Too many requests; wait for `Retry-After` seconds.' },
  INTERNAL_ERROR: { status: 500, summary: 'A fault of the server; quote the request id.' },
  ENGINE_UNAVAILABLE: {
    status: 503,
    summary: 'The container engine does not answer; reads go on.',
  },
  UNAVAILABLE: { status: 503, summary: 'The server cannot take this request now; try again.' },
  DISK_FULL: { status: 507, summary: 'The disk of the server is full.' },
} as const satisfies Record<string, { status: number; summary: string }>

/** A stable error code of the API. */
export type ErrorCode = keyof typeof ERRORS

/** One wrong field of a request: its dotted path and what is wrong with it. Never echoes the value. */
export interface ErrorDetail {
  path: string
  message: string
}

/** An error that a caller may see. Anything else that is thrown becomes INTERNAL_ERROR and is logged. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly details?: ErrorDetail[]
  readonly retry_after_s?: number
  /** Headers that the answer has for this error alone. */
  readonly headers: Readonly<Record<string, string>>
  constructor(
    code: ErrorCode,
    message: string,
    details?: ErrorDetail[],
    retry_after_s?: number,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.status = ERRORS[code].status
    this.details = details
    this.retry_after_s = retry_after_s
    this.headers = headers
  }
}

/** 404 for an id nobody has, and byte for byte the same for one the caller may not see. */
/** @param noun as the API's identifiers have it (`git_credential`) or as people say it. */
export const notFound = (noun = 'resource') =>
  new ApiError('NOT_FOUND', `There is no such ${noun.replace(/^ssh_/, 'SSH ').replaceAll('_', ' ')}.`)
export const conflict = (message: string) => new ApiError('CONFLICT', message)
export const badRequest = (message: string) => new ApiError('BAD_REQUEST', message)
export const forbidden = (message = 'Your role does not allow this.') => new ApiError('FORBIDDEN', message)

/** 422 whose message starts with the dotted path of the first wrong field. */
export function invalid(path: string, message: string): ApiError {
  return new ApiError('VALIDATION_ERROR', `${path}: ${message}`, [{ path, message }])
}
export const starting = () =>
  new ApiError('UNAVAILABLE', 'Portreeve is starting. Try again in a moment.', undefined, 1)
export const databaseLocked = () =>
  new ApiError('UNAVAILABLE', 'The database cannot be written now. Try again.', undefined, 5)
export const engineUnavailable = () =>
  new ApiError(
    'ENGINE_UNAVAILABLE',
    'The container engine does not answer. Start it, then try again; nothing was changed.',
    undefined,
    5,
  )
