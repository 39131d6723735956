import { pipeline, Readable, type Transform } from 'node:stream'
import { constants, createGunzip, createZstdDecompress } from 'node:zlib'
import type { DumpFormat } from '#server/databases/engine'
import { ApiError } from '#server/kernel/errors'
import type { UserPoolOptions } from '#server/kernel/user-pool'

/** Largest body of an uploaded dump, as it is sent. */
export const MAX_DUMP_BYTES = 16 * 1024 ** 3
/** Largest dump once it is unpacked: a small body may unpack to anything. */
const MAX_UNPACKED_BYTES = 128 * 1024 ** 3

/** How far back zstd may refer, as a power of two: it is held in memory. Levels up to 19 need no more. */
const WINDOW_LOG = 23

const PACKINGS: { begins: Buffer; unpack(): Transform }[] = [
  { begins: Buffer.from([0x1f, 0x8b]), unpack: () => createGunzip() },
  {
    begins: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    unpack: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG } }),
  },
]
/** Room for what a text begins with. */
const LOOKED_AT = 128
/** How much of the end of a text is looked at. */
const LAST_BYTES = 4096

const unreadable = (what: string) => new ApiError('VALIDATION_ERROR', `body: ${what}`)

/**
 * Dumps that are received at once, of a project and of all together: unpacking and the parts of an
 * upload to a bucket take up to 50 MiB for each, however slowly it comes. Nobody waits here, since
 * what a client sends does.
 */
export const RECEIVED_AT_ONCE: UserPoolOptions = {
  at_once: 8,
  at_once_per_user: 2,
  waiting_per_user: 0,
  waiting: 0,
  refusal: 'Other dumps are being received. Send this one once they have ended.',
}

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

/** Whether the beginning is that of a dump; text has no NUL, and a client would pass it over. */
const isDump = (head: Buffer, { begins }: DumpFormat): boolean =>
  head.length > 0 && (begins ? head.subarray(0, begins.length).equals(begins) : !head.includes(0))

/** The same text, refused at its end where that is not the end of a whole dump. */
async function* wholeText(
  source: AsyncIterable<Uint8Array>,
  { mark }: NonNullable<DumpFormat['ends']>,
): AsyncGenerator<Uint8Array> {
  let last = Buffer.alloc(0)
  for await (const chunk of source) {
    last = Buffer.concat([last, chunk.subarray(-LAST_BYTES)]).subarray(-LAST_BYTES)
    yield chunk
  }
  if (!last.includes(mark))
    throw unreadable(`is cut off: «${mark}» is missing at its end. Make the dump again, and send all of it.`)
}

/**
 * The dump in an upload: gzip and zstd are undone. Refused with 422 when it does not begin as the
 * dumps of the engine do, or does not end.
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
    const { label, made_with, ends } = format
    if (!isDump(head, format))
      throw unreadable(
        `is no dump of ${label}. Make one with ${made_with}; it may be packed with gzip or zstd.`,
      )
    if (format.guard !== undefined) yield Buffer.from(format.guard)
    const whole = ends?.begun.test(head.toString('latin1')) ? wholeText(all, ends) : all
    for await (const chunk of whole) {
      size += chunk.byteLength
      if (size > MAX_UNPACKED_BYTES)
        throw new ApiError(
          'PAYLOAD_TOO_LARGE',
          `The dump has more than ${MAX_UNPACKED_BYTES} bytes unpacked.`,
        )
      yield chunk
    }
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code)
    if (code === 'ZSTD_error_frameParameter_windowTooLarge')
      throw unreadable(
        'takes too much memory to unpack. Pack it with zstd at a level up to 19, or with gzip.',
      )
    if (/^(Z_|ZSTD_)/.test(code)) throw unreadable('cannot be unpacked: it is cut off or damaged.')
    throw error
  }
}
