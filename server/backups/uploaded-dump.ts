import { pipeline, Readable, type Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import type { DumpFormat } from '#server/databases/engine'
import { ApiError } from '#server/kernel/errors'

/** Largest body of an uploaded dump, as it is sent. */
export const MAX_DUMP_BYTES = 16 * 1024 ** 3
/** Largest dump once it is unpacked: a small body may unpack to anything. */
const MAX_UNPACKED_BYTES = 128 * 1024 ** 3

const PACKINGS: { begins: Buffer; unpack(): Transform }[] = [
  { begins: Buffer.from([0x1f, 0x8b]), unpack: () => createGunzip() },
  { begins: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), unpack: () => createZstdDecompress() },
]
const LOOKED_AT = 16

const unreadable = (what: string) => new ApiError('VALIDATION_ERROR', `body: ${what}`)

/** The beginning of a stream, and all of it. */
async function peek(
  source: AsyncIterable<Uint8Array>,
): Promise<{ head: Buffer; all: AsyncGenerator<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]()
  const seen: Uint8Array[] = []
  let head = Buffer.alloc(0)
  while (head.length < LOOKED_AT) {
    const { value, done } = await iterator.next()
    if (done) break
    seen.push(value)
    head = Buffer.concat([head, value])
  }
  async function* all() {
    yield* seen
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { head, all: all() }
}

/**
 * The dump in an upload: gzip and zstd are undone. Refused with 422 when it does not begin as the dumps of the
 * engine do, or does not end.
 */
export async function* unpackDump(
  source: AsyncIterable<Uint8Array>,
  format: DumpFormat & { label: string },
): AsyncGenerator<Uint8Array> {
  const sent = await peek(source)
  if (sent.head.length === 0) throw unreadable('is empty. Send the dump.')
  const packing = PACKINGS.find(({ begins }) => sent.head.subarray(0, begins.length).equals(begins))
  const plain: AsyncIterable<Uint8Array> = packing
    ? (pipeline(Readable.from(sent.all, { objectMode: false }), packing.unpack(), () => {}) as Transform)
    : sent.all
  let size = 0
  try {
    const { head, all } = await peek(plain)
    const { begins, label, made_with } = format
    if (head.length === 0 || (begins && !head.subarray(0, begins.length).equals(begins)))
      throw unreadable(
        `is no dump of ${label}. Make one with ${made_with}; it may be packed with gzip or zstd.`,
      )
    if (format.guard !== undefined) yield Buffer.from(format.guard)
    for await (const chunk of all) {
      size += chunk.byteLength
      if (size > MAX_UNPACKED_BYTES)
        throw new ApiError(
          'PAYLOAD_TOO_LARGE',
          `The dump has more than ${MAX_UNPACKED_BYTES} bytes unpacked.`,
        )
      yield chunk
    }
  } catch (error) {
    if (/^(Z_|ZSTD_)/.test(String((error as NodeJS.ErrnoException).code)))
      throw unreadable('cannot be unpacked: it is cut off or damaged.')
    throw error
  }
}
