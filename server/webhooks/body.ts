import type { Readable } from 'node:stream'
import { ApiError } from '#server/kernel/errors'
import { JsonError, parseForeignJson } from '#server/kernel/json'

/** Bytes that are held until deliveries are whole: of the hooks of one project, and of all together. */
const MOST_OF_PROJECT = 32 * 1024 * 1024
const MOST_BYTES = 128 * 1024 * 1024
/** Time for a whole delivery; forges themselves give up earlier. */
const TIME_MS = 30_000
/** Values in one delivery: a push of two thousand commits with their files has fewer. */
const MOST_VALUES = 300_000

/** Reads deliveries of hooks, whose signature is over all of their bytes. */
export function createHookBodies() {
  const held = new Map<string, number>()
  let total = 0
  const hold = (project_id: string, bytes: number): void => {
    total += bytes
    const own = (held.get(project_id) ?? 0) + bytes
    if (own > 0) held.set(project_id, own)
    else held.delete(project_id)
  }
  return {
    /** The bytes as they came; their limit is that of the stream. */
    async read(project_id: string, stream: Readable): Promise<Buffer> {
      const chunks: Buffer[] = []
      let size = 0
      const timer = setTimeout(
        () => stream.destroy(new ApiError('REQUEST_TIMEOUT', 'The delivery did not arrive in time.')),
        TIME_MS,
      )
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          size += chunk.length
          hold(project_id, chunk.length)
          if (held.get(project_id)! > MOST_OF_PROJECT || total > MOST_BYTES)
            throw new ApiError(
              'RATE_LIMITED',
              'Too many large deliveries arrive at once. Send this one again.',
              undefined,
              10,
            )
          chunks.push(chunk)
        }
        return Buffer.concat(chunks)
      } finally {
        clearTimeout(timer)
        hold(project_id, -size)
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
