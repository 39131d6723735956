import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto'
import { ArchiveError } from './archive-error.ts'

/**
 * An encrypted archive: a header (8 bytes of name, 16 of salt), then chunks of 64 KiB of plain text, each
 * followed by its tag. Every chunk has a nonce of its own (its number, and whether it is the last one), so
 * that a chunk that was changed, moved, left out or cut off does not open.
 */
const MAGIC = Buffer.from('PRTVARC1')
const SALT_BYTES = 16
const HEADER_BYTES = MAGIC.length + SALT_BYTES
export const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16

/** An object, since one that is made of bytes for every chunk takes longer than the chunk. */
const keyFrom = (data_key: Buffer, header: Buffer) =>
  createSecretKey(
    Buffer.from(hkdfSync('sha256', data_key, header.subarray(MAGIC.length), 'portreeve archive', 32)),
  )

function nonceOf(number: number, is_last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(number, 4, 6)
  nonce.writeUInt8(is_last ? 1 : 0, 11)
  return nonce
}

/** Gathers a stream into pieces of exactly this size; the last one may be shorter, and is marked. */
async function* pieces(
  source: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ bytes: Buffer; is_last: boolean }> {
  let buffer = Buffer.allocUnsafe(size)
  let filled = 0
  for await (const chunk of source) {
    for (let from = 0; from < chunk.byteLength; ) {
      if (filled === size) {
        yield { bytes: buffer, is_last: false }
        buffer = Buffer.allocUnsafe(size)
        filled = 0
      }
      const part = chunk.subarray(from, from + size - filled)
      buffer.set(part, filled)
      filled += part.byteLength
      from += part.byteLength
    }
  }
  yield { bytes: buffer.subarray(0, filled), is_last: true }
}

/** Encrypts a stream with AES-256-GCM in chunks. */
export async function* encrypt(
  source: AsyncIterable<Uint8Array>,
  data_key: Buffer,
): AsyncGenerator<Uint8Array> {
  const header = Buffer.concat([MAGIC, randomBytes(SALT_BYTES)])
  const key = keyFrom(data_key, header)
  yield header
  let number = 0
  for await (const { bytes, is_last } of pieces(source, CHUNK_BYTES)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number, is_last)).setAAD(header)
    yield cipher.update(bytes)
    cipher.final()
    yield cipher.getAuthTag()
    number += 1
  }
}

/** Opens what `encrypt` made; throws ArchiveError at the first chunk that is not what was written. */
export async function* decrypt(
  source: AsyncIterable<Uint8Array>,
  data_key: Buffer,
): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let rest = Buffer.alloc(0)
  while (rest.length < HEADER_BYTES) {
    const { value, done } = await iterator.next()
    if (done) throw new ArchiveError('damaged', 'The archive is cut off.')
    rest = Buffer.concat([rest, value as Uint8Array])
  }
  const header = rest.subarray(0, HEADER_BYTES)
  if (!header.subarray(0, MAGIC.length).equals(MAGIC))
    throw new ArchiveError('damaged', 'The archive does not begin as an encrypted archive does.')
  const key = keyFrom(data_key, header)
  const body = (async function* () {
    if (rest.length > HEADER_BYTES) yield rest.subarray(HEADER_BYTES)
    yield* { [Symbol.asyncIterator]: () => iterator }
  })()
  let number = 0
  for await (const { bytes, is_last } of pieces(body, CHUNK_BYTES + TAG_BYTES)) {
    if (bytes.length < TAG_BYTES) throw new ArchiveError('damaged', 'The archive is cut off.')
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number, is_last)).setAAD(header)
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    const plain = decipher.update(bytes.subarray(0, -TAG_BYTES))
    try {
      decipher.final()
    } catch (cause) {
      throw new ArchiveError(
        'damaged',
        'The archive was changed after it was written, or the key is another one.',
        { cause },
      )
    }
    if (plain.length > 0) yield plain
    number += 1
  }
}
