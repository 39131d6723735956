import { Readable } from 'node:stream'
import type { Secrets } from '#server/kernel/secrets'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from '../archive/archive-error.ts'
import { newDataKey } from '../archive/keys.ts'
import { checkArchive, readArchive } from '../archive/read.ts'
import { writeArchive, type WrittenArchive } from '../archive/write.ts'
import type { ArchiveRow, CopyRow, PieceRow } from './repository.ts'

/** Pieces of any engine are far smaller. */
const MOST_IN_MEMORY = 64 * 1024 ** 2

const contextOf = (id: string) => `log_archives/data_key/${id}`
/** What is known of an object since it was written. */
type Written = Pick<CopyRow, 'sha256' | 'size_bytes' | 'original_bytes'>
type Place = Pick<ArchiveRow, 'id' | 'database_id' | 'destination_id' | 'data_key'>

/** Copies and pieces of the log at their destinations. */
export function createLogObjects({ secrets, open }: { secrets: Secrets; open(id: string): ObjectStore }) {
  const keyOf = ({ id, data_key }: Place): Buffer | undefined =>
    data_key === null ? undefined : Buffer.from(secrets.open(data_key, contextOf(id)), 'base64')
  const ending = ({ data_key }: Place) => (data_key === null ? 'zst' : 'zst.enc')
  const folder = ({ database_id, id }: Place) => `log/${database_id}/${id}`
  async function using<T>(archive: Place, work: (store: ObjectStore) => Promise<T>): Promise<T> {
    const store = open(archive.destination_id)
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }
  const stored = (archive: Place, key: string, what: Written, store: ObjectStore, signal: AbortSignal) => {
    const data_key = keyOf(archive)
    const { sha256, size_bytes, original_bytes } = what
    const written = { sha256: sha256 ?? '', size_bytes, original_bytes }
    return { store, key, signal, ...written, ...(data_key ? { data_key } : {}) }
  }
  const pieceKey = (archive: Place, name: string) => `${folder(archive)}/${name}.${ending(archive)}`

  async function* read(
    archive: Place,
    key: string,
    what: Written,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const store = open(archive.destination_id)
    try {
      yield* readArchive(stored(archive, key, what, store, signal))
    } finally {
      await store.close()
    }
  }
  /** All pieces as one tar; one of them is in memory at a time. */
  async function* packed(archive: Place, pieces: readonly PieceRow[], signal: AbortSignal) {
    const { pack: createPack } = await import('tar-stream')
    const pack = createPack()
    const held = function* () {
      for (;;) {
        const chunk = (pack as unknown as Readable).read() as Uint8Array | null
        if (chunk === null) return
        yield chunk
      }
    }
    for (const piece of pieces) {
      const { name } = piece
      if (piece.original_bytes > MOST_IN_MEMORY)
        throw new ArchiveError('damaged', `The piece ${name} of the log is larger than pieces are.`)
      const chunks: Uint8Array[] = []
      for await (const chunk of read(archive, pieceKey(archive, name), piece, signal)) chunks.push(chunk)
      pack.entry({ name, mode: 0o600 }, Buffer.concat(chunks))
      yield* held()
    }
    pack.finalize()
    yield* held()
  }
  const asStream = (bytes: AsyncIterable<Uint8Array>) => Readable.from(bytes, { objectMode: false })

  return {
    newKey: (id: string): string => secrets.seal(newDataKey().toString('base64'), contextOf(id)),
    copyKey: (archive: Place, id: string) => `${folder(archive)}/${id}.tar.${ending(archive)}`,
    write: (
      archive: Place,
      key: string,
      bytes: AsyncIterable<Uint8Array>,
      signal: AbortSignal,
    ): Promise<WrittenArchive> =>
      using(archive, (store) => {
        const data_key = keyOf(archive)
        return writeArchive(bytes, { store, key, signal, ...(data_key ? { data_key } : {}) })
      }),
    pieceKey,
    /** Compares checksums of everything that a recovery needs, before anything is changed for its sake. */
    check: (archive: Place, copy: CopyRow, pieces: readonly PieceRow[], signal: AbortSignal): Promise<void> =>
      using(archive, async (store) => {
        await checkArchive(stored(archive, copy.object_key, copy, store, signal))
        for (const piece of pieces)
          await checkArchive(stored(archive, pieceKey(archive, piece.name), piece, store, signal))
      }),
    copy: (archive: Place, copy: CopyRow, signal: AbortSignal): Readable =>
      asStream(read(archive, copy.object_key, copy, signal)),
    pieces: (archive: Place, pieces: readonly PieceRow[], signal: AbortSignal): Readable =>
      asStream(packed(archive, pieces, signal)),
    remove: (archive: Place, keys: readonly string[]): Promise<void> =>
      using(archive, async (store) => {
        for (const key of keys) await store.delete(key)
      }),
  }
}
export type LogObjects = ReturnType<typeof createLogObjects>
