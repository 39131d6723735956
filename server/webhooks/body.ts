import { createHmac } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ApiError } from '#server/kernel/errors'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { JsonError, parseForeignJson } from '#server/kernel/json'
import type { Pace } from '#server/kernel/pace'

/** Bytes of deliveries on their way: of the hooks of one project, and of all together. */
const MOST_HELD = {
  of_one: 32 * 1024 * 1024,
  of_all: 128 * 1024 * 1024,
  refusal: 'Too many large deliveries are on their way. Send this one again in a moment.',
}
/** Time for a whole delivery; forges themselves give up earlier. */
const TIME_MS = 30_000
/** Values in one delivery: a push of two thousand commits with their files has fewer. */
const MOST_VALUES = 300_000

/** Takes deliveries of hooks, whose signature is over all of their bytes. */
export function createHookBodies() {
  const held = createHeldBytes(MOST_HELD)
  return {
    /**
     * Does something with the bytes as they came, which are held until that is done; their limit is that of the
     * stream.
     */
    async take<T>(project_id: string, stream: Readable, use: (body: Buffer) => Promise<T>): Promise<T> {
      const chunks: Buffer[] = []
      const share = held.open(project_id)
      const timer = setTimeout(
        () => stream.destroy(new ApiError('REQUEST_TIMEOUT', 'The delivery did not arrive in time.')),
        TIME_MS,
      )
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          share.hold(chunk.length)
          chunks.push(chunk)
        }
        clearTimeout(timer)
        return await use(Buffer.concat(chunks.splice(0)))
      } finally {
        clearTimeout(timer)
        share.release()
      }
    },
  }
}

/** Bytes that are hashed in one go. */
const HASHED_AT_ONCE = 1024 * 1024

/** The HMAC-SHA256 of a body, with others served in between. */
export async function hmacOf(body: Buffer, secret: string, pace: Pace): Promise<Buffer> {
  const hmac = createHmac('sha256', secret)
  for (let from = 0; from < body.length; from += HASHED_AT_ONCE) {
    hmac.update(body.subarray(from, from + HASHED_AT_ONCE))
    const rest = pace.rest()
    if (rest) await rest
  }
  return hmac.digest()
}

/** What a delivery says, as the forge's content type has it; undefined when that cannot be read. */
export function payloadOf(body: Buffer, content_type: string): unknown {
  try {
    return parseForeignJson(textOf(body, content_type), MOST_VALUES)
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError || error instanceof URIError)
      return undefined
    throw error
  }
}

/** Of a form one field counts. All of them are not taken apart, since there may be millions. */
function textOf(body: Buffer, content_type: string): string {
  const text = body.toString('utf8')
  if (!content_type.startsWith('application/x-www-form-urlencoded')) return text
  const encoded = /(?:^|&)payload=([^&]*)/.exec(text)?.[1] ?? ''
  return decodeURIComponent(encoded.replaceAll('+', ' '))
}
