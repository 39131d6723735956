import { createWriteStream, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '#server/kernel/errors'

/** Largest archive of `POST /api/apps/:id/upload`. */
export const MAX_UPLOAD_BYTES = 512 * 1024 * 1024

/** Writes an upload to its file; a body that is too large or breaks off leaves nothing behind. */
export async function receive(directory: string, name: string, stream: Readable): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const partial = join(directory, `${name}.partial`)
  let size = 0
  try {
    await pipeline(
      stream,
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          size += chunk.length
          if (size > MAX_UPLOAD_BYTES)
            throw new ApiError('PAYLOAD_TOO_LARGE', `The archive is larger than ${MAX_UPLOAD_BYTES} bytes.`)
          yield chunk
        }
      },
      createWriteStream(partial, { mode: 0o600 }),
    )
    if (size === 0)
      throw new ApiError('BAD_REQUEST', 'The body is empty. Send a gzipped tar of the source folder.')
    renameSync(partial, join(directory, name))
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
}
