import { createHash } from 'node:crypto'
import { pipeline, Readable } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { atMost } from '#server/kernel/at-most'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from './archive-error.ts'
import { decrypt } from './frames.ts'

export interface StoredArchive {
  store: ObjectStore
  key: string
  sha256: string
  /** What was written, packed and unpacked: more than that is not read, whatever the destination sends. */
  size_bytes?: number | null
  original_bytes?: number | null
  data_key?: Buffer
  signal?: AbortSignal
}
const CHUNK_BYTES = 256 * 1024

const damaged = () =>
  new ArchiveError('damaged', 'The archive is not what was written: its checksum is another one.')

/** The bytes of what was written; `size_bytes` is null where nobody knows any more how long it was. */
const asWritten = (size_bytes: number | null | undefined, source: AsyncIterable<Uint8Array>) =>
  atMost(size_bytes ?? Number.POSITIVE_INFINITY, source, damaged)

/** The stored bytes; throws at their end when they are not what was written. */
async function* checked({
  store,
  key,
  sha256,
  size_bytes,
  signal,
}: StoredArchive): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of asWritten(size_bytes, store.get(key, undefined, signal))) {
      hash.update(chunk)
      yield chunk
    }
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'not_found')
      throw new ArchiveError('missing', 'The archive is no longer at its destination.', { cause: error })
    throw error
  }
  if (hash.digest('hex') !== sha256) throw damaged()
}

/** Reads the whole archive once and compares its checksum, before anything is changed for its sake. */
export async function checkArchive(archive: StoredArchive): Promise<void> {
  const bytes = checked(archive)
  while (!(await bytes.next()).done);
}

/** The dump that an archive holds. Throws, at the latest at its end, when it is not what was written. */
export async function* readArchive(archive: StoredArchive): AsyncGenerator<Uint8Array> {
  const stored = checked(archive)
  const packed = archive.data_key ? decrypt(stored, archive.data_key) : stored
  yield* asWritten(archive.original_bytes, decompress(packed))
}

/** Undoes the compression; a broken stream is an archive that is not what was written. */
export async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stored = Readable.from(source, { objectMode: false, highWaterMark: CHUNK_BYTES })
  const zstd = createZstdDecompress({ chunkSize: CHUNK_BYTES })
  try {
    yield* pipeline(stored, zstd, () => {}) as AsyncIterable<Uint8Array>
  } catch (error) {
    if (/^ZSTD_/.test(String((error as NodeJS.ErrnoException).code))) throw damaged()
    throw error
  } finally {
    stored.destroy()
    zstd.destroy()
  }
}
