import * as v from 'valibot'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from './archive-error.ts'
import { putWhole } from './put-whole.ts'
import { WrappedKey } from './keys.ts'

const FORMAT = 1
const MAX_BYTES = 1024 ** 2
const text = v.pipe(v.string(), v.maxLength(500))

/**
 * What lies beside every archive, so that a destination can be read without the database of the installation
 * that wrote it.
 */
export const Manifest = v.object({
  format: v.literal(FORMAT),
  backup_id: text,
  created_at: text,
  portreeve_version: text,
  target: v.object({
    kind: v.picklist(['database', 'volume', 'app', 'platform']),
    id: v.nullable(text),
    name: text,
    project_id: v.nullable(text),
    /** Name of the project, for people. */
    project: v.nullable(text),
    /** Apps that used it at that time, for people. */
    apps: v.array(text),
  }),
  engine: v.nullable(text),
  version: v.nullable(text),
  /** Name of the archive, in the same folder. */
  archive: text,
  size_bytes: v.number(),
  original_bytes: v.number(),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  compression: v.literal('zstd'),
  /** What opens the archive; null when nothing is needed. */
  encryption: v.nullable(
    v.object({
      cipher: v.literal('aes-256-gcm-64k'),
      /** The archive's key, sealed with the key of the installation of this name. */
      installation: v.object({ key_id: text, sealed: v.string() }),
      /** The same key, wrapped with the passphrase of the destination at that time. */
      passphrase: v.nullable(WrappedKey),
    }),
  ),
  /** Shows that whoever wrote this has the key of the archive; absent where it has none. See `authentic.ts`. */
  proof: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))),
})
export type Manifest = v.InferOutput<typeof Manifest>

/** Keys of the objects of one backup. */
export const manifestKey = (archive_key: string) => `${archive_key}.manifest.json`

export async function writeManifest(
  store: ObjectStore,
  archive_key: string,
  manifest: Manifest,
): Promise<void> {
  const bytes = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  await putWhole(
    store,
    manifestKey(archive_key),
    (async function* () {
      yield bytes
    })(),
  )
}

/** Reads what lies beside an archive. It comes from outside: everything in it is checked. */
export async function readManifest(store: ObjectStore, archive_key: string): Promise<Manifest> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of store.get(manifestKey(archive_key))) {
    size += chunk.byteLength
    if (size > MAX_BYTES) throw new ArchiveError('damaged', 'The manifest is too large.')
    chunks.push(chunk)
  }
  try {
    return v.parse(Manifest, JSON.parse(Buffer.concat(chunks).toString('utf8')))
  } catch (cause) {
    throw new ArchiveError('damaged', 'The manifest beside the archive cannot be read.', { cause })
  }
}
