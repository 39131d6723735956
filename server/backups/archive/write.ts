import { createHash } from 'node:crypto'
import { pipeline, Readable } from 'node:stream'
import { constants, createZstdCompress } from 'node:zlib'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
import { encrypt } from './frames.ts'
import { putWhole } from './put-whole.ts'

export interface WrittenArchive {
  /** As it lies at the destination. */
  size_bytes: number
  /** Of the archive as it lies there. */
  sha256: string
  /** Before compression. */
  original_bytes: number
}
export interface WriteOptions {
  store: ObjectStore
  key: string
  /** Encrypts with it; without, the archive is compressed only. */
  data_key?: Buffer
  signal?: AbortSignal
  onProgress?: (written_bytes: number) => void
}

/**
 * Rows of tables become smaller with it than with zstd's own default, 3, by 4 to 11 %, in a quarter to a half of
 * its processor time; text of programs becomes 8 % larger. What a backup does not take, apps have.
 */
const LEVEL = 1
const CHUNK_BYTES = 256 * 1024

async function* counted(
  source: AsyncIterable<Uint8Array>,
  count: (bytes: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    count(chunk)
    yield chunk
  }
}

/**
 * Streams a dump through compression and encryption to its destination. Every stage waits for the next one:
 * memory stays the same for any size.
 */
export async function writeArchive(
  source: AsyncIterable<Uint8Array>,
  { store, key, data_key, signal, onProgress }: WriteOptions,
): Promise<WrittenArchive> {
  const hash = createHash('sha256')
  let original_bytes = 0
  const plain = Readable.from(
    counted(source, (chunk) => (original_bytes += chunk.byteLength)),
    { objectMode: false, highWaterMark: CHUNK_BYTES },
  )
  const zstd = createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    chunkSize: CHUNK_BYTES,
  })
  // An error on either side ends the other one, and reaches whoever reads.
  const compressed = pipeline(plain, zstd, () => {}) as AsyncIterable<Uint8Array>
  const archive = data_key ? encrypt(compressed, data_key) : compressed
  const { size_bytes } = await putWhole(
    store,
    key,
    counted(archive, (chunk) => hash.update(chunk)),
    { ...(signal ? { signal } : {}), ...(onProgress ? { onProgress } : {}) },
  )
  return { size_bytes, sha256: hash.digest('hex'), original_bytes }
}
