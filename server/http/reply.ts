import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import {
  appendResponseHeader,
  getRequestHeader,
  type H3Event,
  send,
  setCookie,
  setResponseHeader,
  setResponseStatus,
} from 'h3'
import { createPace } from '#server/kernel/pace'
import type { ResponseControls } from './context.ts'
import type { AnyEndpoint } from './definition.ts'
import { isDescription } from './descriptions.ts'
import { writeAnswer } from './long-lists.ts'
import { holdsSecret } from './secret-answers.ts'
import type { AnswerShare } from './untaken.ts'

/** Below this, packing costs more than it saves. */
const LEAST_BYTES = 1024
/** Above the middle, brotli takes several times as long for a few percent. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }
const PACK = {
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: promisify(gzip),
} as const
/** Bytes that take some milliseconds to be hashed: others come before. */
const LONG = 1_000_000

/** Whether a client takes an encoding; `q=0` says that it does not. */
export function takes(header: string | undefined, encoding: string): boolean {
  return (header ?? '').split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase())
    return name === encoding && !parameters.some((one) => /^q=0(\.0*)?$/.test(one))
  })
}

/** Whether one of the tags that a client holds is this one; weakly, as a GET compares them. */
const holdsTag = (header: string | undefined, tag: string): boolean =>
  (header ?? '')
    .split(',')
    .some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === tag.slice(2))

/** The bytes of an answer that may be tagged and packed: typed JSON, or a description of the API. */
async function bytesOf(definition: AnyEndpoint, result: unknown, owner: string): Promise<Buffer | undefined> {
  if (definition.response) return result === undefined ? undefined : writeAnswer(result, owner)
  return typeof result === 'string' && isDescription(definition) ? Buffer.from(result) : undefined
}

/** Lists and descriptions are asked for again and again, and seldom change. */
const isTagged = (definition: AnyEndpoint, result: unknown): boolean =>
  !definition.response || Array.isArray((result as { data?: unknown }).data)

/**
 * Makes the answer as it goes out: with a tag where it is a list or a description, as 304 where the client has
 * it already, and packed above 1 KiB. One that holds a secret is never packed, here or at the edge: the size of
 * what is packed with something that an attacker chose would tell the secret bit by bit.
 */
export async function reply(
  event: H3Event,
  definition: AnyEndpoint,
  result: unknown,
  share: AnswerShare,
): Promise<unknown> {
  const bytes = await bytesOf(definition, result, share.owner)
  if (bytes === undefined) {
    if (typeof result === 'string') share.hold(result.length)
    return result
  }
  share.hold(bytes.length)
  if (bytes.length > LONG) await createPace(share.owner).pause()
  if (event.method === 'GET' && isTagged(definition, result)) {
    const tag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`
    setResponseHeader(event, 'ETag', tag)
    if (holdsTag(getRequestHeader(event, 'if-none-match'), tag)) {
      setResponseStatus(event, 304)
      return null
    }
  }
  if (holdsSecret(definition.response, result)) {
    setResponseHeader(event, 'Cache-Control', 'no-store, no-transform')
    return typed(event, definition, bytes)
  }
  if (bytes.length < LEAST_BYTES) return typed(event, definition, bytes)
  appendResponseHeader(event, 'Vary', 'Accept-Encoding')
  const header = getRequestHeader(event, 'accept-encoding')
  const encoding = (['br', 'gzip'] as const).find((name) => takes(header, name))
  if (!encoding) return typed(event, definition, bytes)
  setContentType(event, definition)
  setResponseHeader(event, 'Content-Encoding', encoding)
  const packed = await PACK[encoding](bytes)
  share.hold(packed.length)
  return packed
}

const setContentType = (event: H3Event, { media_types }: AnyEndpoint) =>
  setResponseHeader(event, 'Content-Type', media_types?.[0] ?? 'application/json')

/** What is written once already is not written a second time. */
function typed(event: H3Event, definition: AnyEndpoint, bytes: Buffer): Buffer {
  setContentType(event, definition)
  return bytes
}

/**
 * Sends an answer, where h3 would look first whether it is a `Response` of the web: only to ask that, Node
 * loads `fetch` with all that belongs to it, 8 MB that stay. Streams and pages are left to h3.
 */
export async function handOver(event: H3Event, result: unknown): Promise<unknown> {
  if (result instanceof Uint8Array) return send(event, result)
  if (typeof result !== 'object' || result === null || 'pipe' in result || 'pipeTo' in result) return result
  return send(event, JSON.stringify(result), 'application/json')
}

/** What a handler may set of its answer besides the body. */
export function controlsOf(event: H3Event): ResponseControls {
  return {
    status: (code) => setResponseStatus(event, code),
    header: (name, value) => setResponseHeader(event, name, value),
    cookie: (name, value, o) =>
      setCookie(event, name, value, {
        maxAge: o.max_age_s,
        httpOnly: o.http_only,
        secure: o.secure,
        sameSite: o.same_site,
        path: o.path,
      }),
  }
}
