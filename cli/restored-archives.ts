import { join } from 'node:path'
import { dataKeyContext, keyFromManifest } from '#server/backups/archives'
import { doubt } from '#server/backups/archive/authentic'
import { type Manifest, readManifest } from '#server/backups/archive/manifest'
import { isCutOff } from '#server/backups/recovery'
import { createBackupRepository, PLATFORM_PROJECT } from '#server/backups/repository'
import type { Db } from '#server/kernel/db'
import { directories } from '#server/kernel/directories'
import { createMeta } from '#server/kernel/meta'
import type { Secrets } from '#server/kernel/secrets'
import { createLocalStore } from '#server/platform/objectstore/local'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'

/** Folders of a destination that hold what a recovery needs. */
const FOLDERS = ['database/', 'volume/', 'app/', 'platform/', 'log/']
const MANIFEST = /\.manifest\.json$/
const TABLES = { database: 'databases', volume: 'volumes', app: 'apps' } as const

interface Destination {
  id: string
  kind: string
  config: string
}
/** The destination at which this very backup of the platform was made. */
function destinationOf(db: Db, { backup_id }: Manifest): Destination | undefined {
  return db
    .sql(
      `SELECT id, kind, config FROM storage_providers WHERE id = (SELECT destination_id FROM backups WHERE id = ?)`,
    )
    .get(backup_id) as Destination | undefined
}

/**
 * Archives in a folder that was carried here go where the restored installation looks for them. Answers how many
 * were copied.
 */
export async function bringArchives(
  db: Db,
  from: ObjectStore,
  manifest: Manifest,
  data_directory: string,
): Promise<number> {
  const destination = destinationOf(db, manifest)
  if (destination?.kind !== 'local') return 0
  const { folder = 'default' } = JSON.parse(destination.config) as { folder?: string }
  const to = createLocalStore(join(directories(data_directory).backups, 'archives', folder))
  let copied = 0
  for (const prefix of FOLDERS)
    for await (const { key, size_bytes } of from.list(prefix)) {
      if ((await to.stat(key))?.size_bytes === size_bytes) continue
      await to.put(key, from.get(key))
      copied += 1
    }
  return copied
}

/**
 * The backup that a copy came from is under way in that copy. It was read to its end meanwhile, so it is a good one
 * wherever it can be found again.
 */
export async function settleOwn(db: Db, store: ObjectStore, manifest: Manifest): Promise<void> {
  const backups = createBackupRepository(db)
  const known = backups.find(manifest.backup_id)
  if (!known || !isCutOff(known) || !(await store.stat(known.object_key))) return
  const { size_bytes, original_bytes, sha256, engine, version } = manifest
  backups.setStatus(known.id, 'failed', 'succeeded')
  backups.update(known.id, { size_bytes, original_bytes, sha256, engine, version, error: null })
}

const isThere = (db: Db, { kind, id }: Manifest['target']): boolean =>
  kind !== 'platform' &&
  id !== null &&
  db.sql(`SELECT 1 FROM ${TABLES[kind]} WHERE id = ?`).get(id) !== undefined

/** What was not taken over, and why. */
export interface LeftArchive {
  key: string
  reason: string
}
export interface Adopted {
  count: number
  /** Of those that were under way when the backup of the platform was made. */
  ended: number
  left: LeftArchive[]
}
/**
 * Why a backup is not taken over. Only the key shows that this installation wrote it: whoever can write to the
 * destination could lay a plain one there that is newer than the real ones.
 */
function refusal(manifest: Manifest, object_key: string, data_key: Buffer | undefined): string | undefined {
  if (!manifest.encryption) return 'It is not encrypted, so nothing shows that this installation made it.'
  // One that nothing here opens would only stand in the way of an older one.
  if (!data_key) return 'The key of this installation does not open it.'
  return doubt(manifest, object_key, data_key)
}

/**
 * Backups that were made after that of the platform are not known to its database; the manifests beside them tell
 * of them. Answers how many are known now. A manifest that is no good is left, since others lie beside it.
 */
export async function adoptNewer(
  db: Db,
  store: ObjectStore,
  platform: Manifest,
  secrets: Secrets | undefined,
): Promise<Adopted> {
  const adopted: Adopted = { count: 0, ended: 0, left: [] }
  const destination = destinationOf(db, platform)
  if (!destination) return adopted
  const repository = createBackupRepository(db)
  for (const kind of Object.keys(TABLES))
    for await (const { key } of store.list(`${kind}/`)) {
      if (!MANIFEST.test(key)) continue
      const object_key = key.replace(MANIFEST, '')
      const manifest = await readManifest(store, object_key).catch((error: Error) => error)
      if (manifest instanceof Error) {
        adopted.left.push({ key, reason: manifest.message })
        continue
      }
      const known = repository.find(manifest.backup_id)
      const is_newer = manifest.created_at >= platform.created_at
      // The manifest is written last: what was under way in the copy has ended well where there is one.
      if (!(known ? isCutOff(known) : is_newer) || !isThere(db, manifest.target)) continue
      const data_key = await keyFromManifest(manifest, { secrets }).catch(() => undefined)
      const reason = refusal(manifest, object_key, data_key)
      if (reason !== undefined) {
        adopted.left.push({ key, reason })
        continue
      }
      const { target, size_bytes, original_bytes, sha256, engine, version, created_at } = manifest
      if (known) repository.delete(known.id)
      repository.insert({
        id: manifest.backup_id,
        target: target.kind,
        target_id: target.id,
        target_name: target.name,
        project_id: target.project_id ?? PLATFORM_PROJECT,
        status: 'succeeded',
        trigger: known?.trigger ?? 'manual',
        schedule_id: known?.schedule_id ?? null,
        destination_id: destination.id,
        object_key,
        ...{ size_bytes, original_bytes, sha256, engine, version, created_at },
        encrypted: manifest.encryption ? 1 : 0,
        data_key:
          data_key && secrets
            ? secrets.seal(data_key.toString('base64'), dataKeyContext(manifest.backup_id))
            : null,
        pause_app: 0,
        without: null,
        links: known?.links ?? null,
        error: null,
        duration_ms: null,
        verification: null,
        verified_at: null,
        expires_at: known?.expires_at ?? null,
        created_by: known?.created_by ?? null,
        finished_at: created_at,
      })
      if (known) adopted.ended += 1
      else adopted.count += 1
    }
  return adopted
}

/** What the recovery did, as the restored installation told it; undefined while it goes on. */
export interface Recovered {
  succeeded: boolean
  restored: string[]
  lost: Record<string, string>
  deployed: string[]
  duration_ms: number
}
export function recoveredIn(db: Db): Recovered | undefined {
  if (createMeta(db).get('recovery') !== undefined) return undefined
  const found = db
    .sql(
      `SELECT type, payload FROM events WHERE type IN ('platform.recovered', 'platform.recovery_failed') ORDER BY seq DESC LIMIT 1`,
    )
    .get() as { type: string; payload: string } | undefined
  if (!found) return undefined
  const told = JSON.parse(found.payload) as Omit<Recovered, 'succeeded'>
  return { ...told, succeeded: found.type === 'platform.recovered' }
}
