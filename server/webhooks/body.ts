import type { Readable } from 'node:stream'

/** The bytes of a hook as they came; its limit is that of the stream. */
export async function readHookBody(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
