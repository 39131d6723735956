import type { BackupRow } from './repository.ts'
import { PLATFORM_PROJECT } from './repository.ts'
import type { Backup, Verification } from './schema.ts'

/** A backup as the API shows it; never a key. */
export const toBackup = (
  row: BackupRow,
  destination: { name: string; location: string } | undefined,
): Backup => ({
  id: row.id,
  target: row.target,
  target_id: row.target_id,
  target_name: row.target_name,
  project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
  status: row.status,
  trigger: row.trigger,
  schedule_id: row.schedule_id,
  size_bytes: row.size_bytes,
  original_bytes: row.original_bytes,
  sha256: row.sha256,
  encrypted: row.encrypted === 1,
  destination_id: row.destination_id,
  destination: destination?.name ?? '',
  location: `${destination?.location ?? ''}/${row.object_key}`,
  engine: row.engine,
  version: row.version,
  error: row.error,
  duration_ms: row.duration_ms,
  verification: row.verification === null ? null : (JSON.parse(row.verification) as Verification),
  verified_at: row.verified_at,
  expires_at: row.expires_at,
  created_at: row.created_at,
  finished_at: row.finished_at,
})
