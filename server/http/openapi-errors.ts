import { type ErrorCode, ERRORS } from '#server/kernel/errors'
import type { AnyEndpoint } from './definition.ts'
import type { JsonSchema } from './openapi-schemas.ts'

/** What a code says in the examples of the document. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  BAD_REQUEST: 'page: must be a whole number.',
  UNAUTHORIZED: 'Log in, or send a valid token or API key.',
  INVALID_CREDENTIALS: 'The e-mail address or the password is wrong.',
  FORBIDDEN: 'Your role in this project is viewer; this needs developer.',
  NOT_FOUND: 'There is no such app.',
  CONFLICT: 'An app named shop exists already. Choose another name.',
  PAYLOAD_TOO_LARGE: 'The body is larger than 1048576 bytes.',
  UNSUPPORTED_MEDIA_TYPE: 'Send the body as application/json.',
  VALIDATION_ERROR: 'name: is required.',
  INTERNAL_ERROR: 'Something went wrong on the server. Its log has the details under this request id.',
}

/** Every code that an endpoint can answer: what follows from its definition, and what it adds. */
export function errorCodesOf(definition: AnyEndpoint, method: string): ErrorCode[] {
  const { access, scope, params, body, upload, errors = [], allow_stale_password } = definition
  const mutates = method !== 'get'
  const secured = access !== 'public'
  const codes = new Set<ErrorCode>([
    'BAD_REQUEST',
    'INTERNAL_ERROR',
    'UNAVAILABLE',
    'RATE_LIMITED',
    ...errors,
  ])
  const add = (condition: unknown, ...more: ErrorCode[]) => {
    if (condition) for (const code of more) codes.add(code)
  }
  add(secured, 'UNAUTHORIZED')
  add(secured && (mutates || access !== 'self'), 'FORBIDDEN')
  add(secured && !allow_stale_password, 'PASSWORD_CHANGE_REQUIRED')
  add(secured && mutates, 'CSRF_INVALID')
  add(params || scope === 'body' || typeof scope === 'object', 'NOT_FOUND')
  add(body, 'VALIDATION_ERROR')
  // A body is read also where none is asked for.
  add(mutates, 'REQUEST_TIMEOUT', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  add(secured && method === 'post' && !upload, 'CONFLICT')
  add(mutates, 'DISK_FULL')
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}

/** Codes of one status, joined: the name of the response that they share. */
export const responseName = (codes: readonly ErrorCode[]) => codes.join('_or_')

export function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>()
  for (const code of codes)
    groups.set(ERRORS[code].status, [...(groups.get(ERRORS[code].status) ?? []), code])
  return groups
}

function exampleBody(code: ErrorCode): unknown {
  const error = { code, message: MESSAGES[code] ?? ERRORS[code].summary }
  if (code === 'VALIDATION_ERROR')
    return { error: { ...error, details: [{ path: 'name', message: 'is required.' }] } }
  if (code === 'INTERNAL_ERROR') return { error: { ...error, request_id: 'req_0g3vkq9d5m2x7wyjb1tz' } }
  return { error }
}

const DETAILS: JsonSchema = {
  type: 'array',
  description: 'Every wrong field.',
  items: {
    type: 'object',
    required: ['path', 'message'],
    properties: {
      path: { type: 'string', description: 'Dotted path of the field.' },
      message: { type: 'string', description: 'Description of the error.' },
    },
  },
}

/** The error that every response of a failure holds. */
export const errorSchemas = (): Record<string, JsonSchema> => ({
  Error: {
    ...envelopeOf(Object.keys(ERRORS) as ErrorCode[]),
    title: 'Error',
    description: 'What went wrong.',
  },
})

function envelopeOf(codes: readonly ErrorCode[]): JsonSchema {
  const properties = {
    code: { type: 'string', enum: [...codes], description: 'Stable; branch on this.' },
    message: { type: 'string', description: 'For people; may change between versions.' },
    ...(codes.some((code) => code === 'VALIDATION_ERROR' || code === 'BAD_REQUEST')
      ? { details: DETAILS }
      : {}),
    ...(codes.includes('INTERNAL_ERROR')
      ? {
          request_id: {
            type: 'string',
            description: 'Finds the details in the log of the server.',
          },
        }
      : {}),
  }
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        description: 'What went wrong.',
        required: ['code', 'message'],
        properties,
      },
    },
  }
}

/** One error response: the envelope, narrowed to the codes that this status can carry here. */
export function errorResponse(codes: readonly ErrorCode[]): JsonSchema {
  const retries = codes.some((code) => ['RATE_LIMITED', 'UNAVAILABLE', 'ENGINE_UNAVAILABLE'].includes(code))
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].summary}`).join(' '),
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
      ...(retries ? { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } : {}),
    },
    content: {
      'application/json': {
        // The error of all, narrowed to the codes of this status.
        schema: { ...envelopeOf(codes), allOf: [{ $ref: '#/components/schemas/Error' }] },
        examples: Object.fromEntries(
          codes.map((code) => [code, { summary: ERRORS[code].summary, value: exampleBody(code) }]),
        ),
      },
    },
  }
}
