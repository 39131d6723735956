import { own } from '#server/kernel/own'
import type { IncomingMessage } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import type { H3Event } from 'h3'
import type * as v from 'valibot'
import { ApiError, badRequest } from '#server/kernel/errors'
import { gathered } from '#server/kernel/gathered'
import { JsonError, parseForeignJson } from '#server/kernel/json'

/** Largest JSON body. Source: api.md "Conventions". */
export const MAX_BODY_BYTES = 1_048_576
/** The same of a caller whom nobody knows: a login, a token and a new password are short. */
export const MAX_PUBLIC_BODY_BYTES = 16_384
/** Time for a JSON body, and for the next bytes of an upload. Source: security.md 2.17. */
const BODY_TIMEOUT_MS = 30_000

const tooLarge = (limit: number) =>
  new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit} bytes.`)
const tooSlow = () =>
  new ApiError('REQUEST_TIMEOUT', 'The body did not arrive in time. Send it again, faster.')

/** Decodes one segment of the path; malformed percent-encoding is the caller's fault. */
export function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequest('The path is not valid percent-encoded UTF-8.')
  }
}

type AnySchema = v.GenericSchema & {
  type?: string
  wrapped?: AnySchema
  pipe?: AnySchema[]
  entries?: Record<string, AnySchema>
}

function primitive(schema: AnySchema | undefined): string | undefined {
  let current = schema
  while (current?.wrapped) current = current.wrapped
  return current?.type
}
/** `a,b` and the parameter given twice are the same; an empty text is a value as wrong as any other. */
const splitValues = (texts: readonly string[]): string[] => texts.flatMap((text) => text.split(','))

/** The query of a request without its question mark; malformed percent-encoding is the caller's fault. */
export function searchOf(event: H3Event): string {
  const url = event.node.req.originalUrl ?? event.node.req.url ?? ''
  const start = url.indexOf('?')
  const search = start < 0 ? '' : url.slice(start + 1)
  try {
    decodeURIComponent(search)
  } catch {
    throw badRequest('The query is not valid percent-encoded UTF-8.')
  }
  return search
}

/** A text as its type reads it; one that is no number or flag stays a text. */
function readValue(text: string, type: string | undefined): string | number | boolean {
  if (type === 'number' && /^-?\d{1,15}$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/**
 * Turns query texts into what the schema's fields mean; a text that is no plain decimal number stays a text
 * and is refused.
 */
export function readQuery(
  text_of_query: string,
  schema: v.GenericSchema | undefined,
): Record<string, unknown> {
  const entries = (schema as AnySchema | undefined)?.entries ?? {}
  const search = new URLSearchParams(text_of_query)
  const result: Record<string, unknown> = Object.create(null)
  for (const key of new Set(search.keys())) {
    const [text = '', ...more] = search.getAll(key)
    if (!Object.hasOwn(entries, key))
      throw badRequest(`${key.slice(0, 64)}: is not a parameter of this endpoint.`)
    const type = primitive(own(entries, key))
    if (type === 'array') {
      result[key] = splitValues([text, ...more])
      continue
    }
    if (more.length > 0) throw badRequest(`${key}: must be given once.`)
    result[key] = readValue(text, type)
  }
  return { ...result }
}

export interface ReadOptions {
  timeout_ms?: number
  /** Hears of bytes that are kept until the body is whole; fails the body with what it throws. */
  hold?: (bytes: number) => void
}

/**
 * Whole body of a request: more than `limit` bytes is a 413, one that is not there within `timeout_ms` a 408;
 * both close the connection.
 */
export function readBytes(
  request: IncomingMessage,
  limit: number,
  { timeout_ms = BODY_TIMEOUT_MS, hold = () => {} }: ReadOptions = {},
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge(limit))
  return new Promise((resolve, reject) => {
    const body = gathered()
    let size = 0
    const settle = (act: () => void) => {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('error', onBroken).off('aborted', onBroken)
      act()
    }
    const fail = (error: unknown) =>
      settle(() => {
        request.pause()
        reject(error)
      })
    const timer = setTimeout(() => fail(tooSlow()), timeout_ms)
    const onEnd = () => settle(() => resolve(body.bytes()))
    const onBroken = () => fail(badRequest('The body ended before it was complete.'))
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return fail(tooLarge(limit))
      try {
        hold(chunk.length)
      } catch (error) {
        return fail(error)
      }
      body.add(chunk)
    }
    request.on('data', onData).once('end', onEnd).once('error', onBroken).once('aborted', onBroken)
  })
}

/**
 * The same bytes, failing with a 413 once there are more than `limit`, and with a 408 when none come for
 * `idle_ms`; also with what `atEnd` throws, in place of its end.
 */
export function limitStream(
  source: Readable,
  limit: number,
  { idle_ms = BODY_TIMEOUT_MS, atEnd }: { idle_ms?: number; atEnd?: () => Promise<void> } = {},
): Readable {
  let size = 0
  const timer = setTimeout(() => limited.destroy(tooSlow()), idle_ms)
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      timer.refresh()
      size += chunk.length
      if (size > limit) done(tooLarge(limit))
      else done(null, chunk)
    },
    flush(done) {
      if (!atEnd) return done()
      atEnd().then(() => done(), done)
    },
  })
  limited.once('close', () => clearTimeout(timer))
  // Who reads it hears of its error. A body that is refused unread has no reader, and its error is no fault of ours.
  limited.on('error', () => undefined)
  source.once('error', (error) => limited.destroy(error))
  source.once('aborted', () => limited.destroy(badRequest('The body ended before it was complete.')))
  return source.pipe(limited)
}

/** Parses JSON strictly. */
export function parseJson(bytes: Buffer): unknown {
  try {
    return parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    throw badRequest(error instanceof JsonError ? error.message : 'The body is not valid JSON.')
  }
}

/** Whether a Content-Type says nothing about the character set, or UTF-8, which is the only one for JSON. */
export function isUtf8(header: string | undefined): boolean {
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)"?/i.exec(header ?? '')?.[1]
  return charset === undefined || /^utf-?8$/i.test(charset)
}

/** Whether a Content-Type names one of the accepted media types. */
export function isMediaType(header: string | undefined, accepted: readonly string[]): boolean {
  return accepted.includes((header ?? '').split(';')[0]!.trim().toLowerCase())
}
