import { exactly } from '#server/kernel/at-most'
import type { Secrets } from '#server/kernel/secrets'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from './archive/archive-error.ts'
import { withProof } from './archive/authentic.ts'
import { newDataKey, unwrapKey, wrapKey } from './archive/keys.ts'
import { type Manifest, manifestKey, readManifest, writeManifest } from './archive/manifest.ts'
import { checkArchive, readArchive } from './archive/read.ts'
import { writeArchive, type WrittenArchive } from './archive/write.ts'
import { asAnswer } from './as-answer.ts'
import { type BackupRow, PLATFORM_PROJECT } from './repository.ts'
import type { Subject } from './target.ts'

export const dataKeyContext = (id: string) => `backups/data_key/${id}`
/** What the copy of the key in the manifest is sealed for. */
const manifestContext = (id: string) => `manifest:${id}`

const otherLength = () =>
  new ArchiveError('damaged', 'The archive is not as long at its destination as it was written.')

const elsewhere = () =>
  new ArchiveError(
    'missing',
    'The archive is not at its destination, whose settings were changed while it was written. Make the backup again.',
  )

export interface ArchivesOptions {
  secrets: Secrets
  version: string
  destinations: {
    open(id: string): ObjectStore
    passphrase(id: string): string | undefined
  }
  /** Name of a project, for the manifest. */
  projectName(id: string): string | undefined
}

/** Archives of backups at their destinations: writing, checking, opening, deleting. */
export function createArchives({ secrets, version, destinations, projectName }: ArchivesOptions) {
  const openKey = (row: BackupRow): Buffer | undefined =>
    row.data_key === null
      ? undefined
      : Buffer.from(secrets.open(row.data_key, dataKeyContext(row.id)), 'base64')
  async function using<T>(row: BackupRow, work: (store: ObjectStore) => Promise<T>): Promise<T> {
    const store = destinations.open(row.destination_id)
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }
  const stored = (row: BackupRow, store: ObjectStore, key: Buffer | undefined, signal?: AbortSignal) => ({
    store,
    key: row.object_key,
    sha256: row.sha256 ?? '',
    size_bytes: row.size_bytes,
    original_bytes: row.original_bytes,
    ...(key ? { data_key: key } : {}),
    ...(signal ? { signal } : {}),
  })
  return {
    /** A key for a new archive, sealed for its row. */
    newKey: (id: string): string => secrets.seal(newDataKey().toString('base64'), dataKeyContext(id)),
    openKey,
    write: (
      row: BackupRow,
      bytes: AsyncIterable<Uint8Array>,
      signal: AbortSignal,
      onProgress: (written_bytes: number) => void,
    ): Promise<WrittenArchive> =>
      using(row, (store) => {
        const data_key = openKey(row)
        return writeArchive(bytes, {
          store,
          key: row.object_key,
          signal,
          onProgress,
          ...(data_key ? { data_key } : {}),
        })
      }),
    /**
     * Writes what another installation needs to know, beside the archive. Throws where that is not:
     * its destination may have become another place while it was written, and what it is the last
     * copy of is deleted after this.
     */
    describe: (row: BackupRow, subject: Pick<Subject, 'apps'>): Promise<void> =>
      using(row, async (store) => {
        if ((await store.stat(row.object_key))?.size_bytes !== row.size_bytes) throw elsewhere()
        const key = openKey(row)
        const passphrase = key && destinations.passphrase(row.destination_id)
        const told: Manifest = {
          format: 1,
          backup_id: row.id,
          created_at: row.created_at,
          portreeve_version: version,
          target: {
            kind: row.target,
            id: row.target_id,
            name: row.target_name,
            project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
            project: projectName(row.project_id) ?? null,
            apps: subject.apps,
          },
          engine: row.engine,
          version: row.version,
          archive: row.object_key.split('/').at(-1)!,
          size_bytes: row.size_bytes!,
          original_bytes: row.original_bytes!,
          sha256: row.sha256!,
          compression: 'zstd',
          encryption: key
            ? {
                cipher: 'aes-256-gcm-64k',
                installation: {
                  key_id: secrets.key_id,
                  sealed: secrets.seal(key.toString('base64'), manifestContext(row.id)),
                },
                passphrase: passphrase === undefined ? null : await wrapKey(key, passphrase),
              }
            : null,
        }
        await writeManifest(store, row.object_key, key ? withProof(told, key) : told)
      }),
    /** Compares the checksum of the whole archive, before anything is changed for its sake. */
    check: (row: BackupRow, signal?: AbortSignal): Promise<void> =>
      using(row, (store) => checkArchive(stored(row, store, undefined, signal))),
    /** The dump in an archive. */
    async *read(row: BackupRow, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
      const store = destinations.open(row.destination_id)
      try {
        yield* readArchive(stored(row, store, openKey(row), signal))
      } finally {
        await store.close()
      }
    },
    /**
     * The archive as it lies at its destination, as long as it was written: its length is promised
     * by then, and what goes on after it would be taken for the answer to another request.
     */
    async *raw(row: BackupRow, range?: { start: number; end: number }): AsyncGenerator<Uint8Array> {
      const store = destinations.open(row.destination_id)
      const bytes = range ? range.end - range.start + 1 : (row.size_bytes ?? 0)
      try {
        yield* exactly(bytes, store.get(row.object_key, range), otherLength)
      } catch (error) {
        throw asAnswer(error)
      } finally {
        await store.close()
      }
    },
    isThere: (row: BackupRow): Promise<boolean> =>
      using(row, async (store) => (await store.stat(row.object_key)) !== undefined),
    remove: (row: BackupRow): Promise<void> =>
      using(row, async (store) => {
        await store.delete(manifestKey(row.object_key))
        await store.delete(row.object_key)
      }),
  }
}
export type Archives = ReturnType<typeof createArchives>

/** The key of an archive that only its manifest tells of: by passphrase, or by the installation's own key. */
export async function keyFromManifest(
  { encryption, backup_id }: Manifest,
  { passphrase, secrets }: { passphrase?: string | undefined; secrets?: Secrets | undefined },
): Promise<Buffer | undefined> {
  if (!encryption) return undefined
  if (passphrase !== undefined && encryption.passphrase) return unwrapKey(encryption.passphrase, passphrase)
  if (secrets && encryption.installation.key_id === secrets.key_id)
    return Buffer.from(secrets.open(encryption.installation.sealed, manifestContext(backup_id)), 'base64')
  throw new ArchiveError(
    'key_needed',
    encryption.passphrase
      ? 'The archive is encrypted: its passphrase is needed.'
      : `The archive is encrypted with the key ${encryption.installation.key_id} of the installation that wrote it: its keys/secret.key is needed.`,
  )
}
export { readManifest }
