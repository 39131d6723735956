import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { BackupStatus } from './machine.ts'
import type { Target } from './schema.ts'

/** What stands in the project's place for backups of the installation itself. */
export const PLATFORM_PROJECT = 'platform'

export interface BackupRow {
  id: string
  target: Target
  target_id: string | null
  target_name: string
  project_id: string
  status: BackupStatus
  trigger: 'manual' | 'schedule' | 'final' | 'upload'
  schedule_id: string | null
  destination_id: string
  object_key: string
  size_bytes: number | null
  original_bytes: number | null
  sha256: string | null
  encrypted: number
  data_key: string | null
  pause_app: number
  /** JSON: parts of an app that are left out; null for none. */
  without: string | null
  /** JSON: apps that a deleted database was linked to, with their variables; null for none. */
  links: string | null
  engine: string | null
  version: string | null
  error: string | null
  duration_ms: number | null
  verification: string | null
  verified_at: string | null
  expires_at: string | null
  created_by: string | null
  created_at: string
  finished_at: string | null
}
/** Columns that change after a backup was asked for; keys of an update come from this list only. */
const CHANGEABLE = [
  'size_bytes',
  'original_bytes',
  'sha256',
  'engine',
  'version',
  'error',
  'duration_ms',
  'verification',
  'verified_at',
  'expires_at',
  'finished_at',
] as const
export type BackupColumns = Partial<Pick<BackupRow, (typeof CHANGEABLE)[number]>>

export interface BackupFilter {
  project_id?: Wanted
  target?: Wanted
  target_id?: Wanted
  status?: Wanted
}

const MOST_LEFT = 500

/** SQL of backups and nothing else. */
export function createBackupRepository(db: Db) {
  return {
    insert: (row: BackupRow) => {
      const columns = Object.keys(row)
      db.sql(
        `INSERT INTO backups (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
      ).run(row)
    },
    find: (id: string) => db.sql('SELECT * FROM backups WHERE id = ?').get(id) as BackupRow | undefined,
    page: (
      project_ids: readonly string[] | undefined,
      filter: BackupFilter,
      ...span: Span
    ): Page<BackupRow> =>
      selectPage<BackupRow>(
        db,
        {
          table: 'backups',
          project_ids,
          equals: {
            project_id: filter.project_id,
            target: filter.target,
            target_id: filter.target_id,
            status: filter.status,
          },
        },
        span,
      ),
    setStatus: (id: string, from: BackupStatus, to: BackupStatus): boolean =>
      db.sql('UPDATE backups SET status = ? WHERE id = ? AND status = ?').run(to, id, from).changes === 1,
    update(id: string, change: BackupColumns) {
      const names = CHANGEABLE.filter((name) => name in change)
      db.sql(`UPDATE backups SET ${names.map((name) => `${name} = @${name}`).join(', ')} WHERE id = @id`).run(
        {
          ...change,
          id,
        },
      )
    },
    delete: (id: string) => db.sql('DELETE FROM backups WHERE id = ?').run(id),
    /** Notes whether something of one that failed may lie at its destination. */
    setLeft: (id: string, is_left: boolean) =>
      db.sql('UPDATE backups SET is_left = ? WHERE id = ?').run(Number(is_left), id),
    /** Those of which something may lie there; as many as one pass is to be about. */
    left: () =>
      db
        .sql(`SELECT * FROM backups WHERE is_left = 1 AND status = 'failed' LIMIT ${MOST_LEFT}`)
        .all() as BackupRow[],
    isLeft: (id: string): boolean =>
      db.sql('SELECT 1 FROM backups WHERE is_left = 1 AND id = ?').get(id) !== undefined,
    /** Forgets some of those that failed before a time; returns how many. */
    forgetFailed: (before: string): number =>
      forgetSome(db, { table: 'backups', where: `status = 'failed' AND finished_at < ?` }, before),
    /** The good ones of a schedule, those that were made last first, whatever the clock said then. */
    succeededOf: (schedule_id: string) =>
      db
        .sql(`SELECT * FROM backups WHERE schedule_id = ? AND status = 'succeeded' ORDER BY rowid DESC`)
        .all(schedule_id) as BackupRow[],
    /** @param ahead one made after this time, which is still to come, was made by a clock that was wrong: it comes last. */
    newestGood: (target: Target, target_id: string | null, ahead: string) =>
      db
        .sql(
          `SELECT * FROM backups WHERE target = ? AND target_id IS ? AND status = 'succeeded' ORDER BY created_at > ?, created_at DESC, rowid DESC LIMIT 1`,
        )
        .get(target, target_id, ahead) as BackupRow | undefined,
    isUnderWay: (target: Target, target_id: string | null): boolean =>
      db
        .sql(
          `SELECT 1 FROM backups WHERE target = ? AND target_id IS ? AND status IN ('queued', 'running') LIMIT 1`,
        )
        .get(target, target_id) !== undefined,
    underWay: () =>
      db.sql(`SELECT * FROM backups WHERE status IN ('queued', 'running')`).all() as BackupRow[],
    /** Size of the archives of a project. */
    bytesOf: (project_id: string) =>
      db
        .sql('SELECT coalesce(sum(size_bytes), 0) FROM backups WHERE project_id = ?')
        .pluck()
        .get(project_id) as number,
    countAt: (destination_id: string) =>
      db.sql('SELECT count(*) FROM backups WHERE destination_id = ?').pluck().get(destination_id) as number,
    /** Whether any were moved. */
    move: (target_id: string, project_id: string): boolean =>
      db.sql('UPDATE backups SET project_id = ? WHERE target_id = ?').run(project_id, target_id).changes > 0,
  }
}
export type BackupRepository = ReturnType<typeof createBackupRepository>
