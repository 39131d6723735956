import type { Readable } from 'node:stream'
import { ApiError } from '#server/kernel/errors'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { JsonError, parseForeignJson } from '#server/kernel/json'

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

/** Reads deliveries of hooks, whose signature is over all of their bytes. */
export function createHookBodies() {
  const held = createHeldBytes(MOST_HELD)
  return {
    /** The bytes as they came; their limit is that of the stream. */
    async read(project_id: string, stream: Readable): Promise<Buffer> {
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
        return Buffer.concat(chunks)
      } finally {
        clearTimeout(timer)
        share.release()
      }
    },
  }
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
