import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Span } from '#server/kernel/page'
import type { BackupFilter } from './repository.ts'
import type { Target } from './schema.ts'

export interface ScheduleRow {
  id: string
  name: string
  target: Target
  target_id: string | null
  project_id: string
  cron: string
  timezone: string
  /** JSON. */
  retention: string
  destination_id: string | null
  encrypted: number
  pause_app: number
  enabled: number
  next_run_at: string | null
  last_run_at: string | null
  last_missed_at: string | null
  created_by: string | null
  created_at: string
  updated_at: string
}
/** So many begin in one pass; the rest follows a minute later. */
const MOST_DUE = 500

/** SQL of schedules of backups and nothing else. */
export function createScheduleRepository(db: Db) {
  return {
    insert: (row: ScheduleRow) => {
      const columns = Object.keys(row)
      db.sql(
        `INSERT INTO backup_schedules (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
      ).run(row)
    },
    find: (id: string) =>
      db.sql('SELECT * FROM backup_schedules WHERE id = ?').get(id) as ScheduleRow | undefined,
    page: (
      project_ids: readonly string[] | undefined,
      filter: Pick<BackupFilter, 'project_id' | 'target' | 'target_id'>,
      ...span: Span
    ): Page<ScheduleRow> =>
      selectPage<ScheduleRow>(
        db,
        {
          table: 'backup_schedules',
          project_ids,
          equals: { project_id: filter.project_id, target: filter.target, target_id: filter.target_id },
        },
        span,
      ),
    update: (row: ScheduleRow) =>
      db
        .sql(
          `UPDATE backup_schedules SET name = @name, cron = @cron, timezone = @timezone,
             retention = @retention, destination_id = @destination_id, encrypted = @encrypted,
             pause_app = @pause_app, enabled = @enabled, next_run_at = @next_run_at, updated_at = @updated_at
           WHERE id = @id`,
        )
        .run(row),
    setRun: (id: string, run: Pick<ScheduleRow, 'next_run_at' | 'last_run_at'>) =>
      db
        .sql(
          'UPDATE backup_schedules SET next_run_at = @next_run_at, last_run_at = @last_run_at WHERE id = @id',
        )
        .run({ ...run, id }),
    setMissed: (id: string, slot: string) =>
      db.sql('UPDATE backup_schedules SET last_missed_at = ? WHERE id = ?').run(slot, id),
    /** Ids of those that are due; projects take turns, so that nobody's many keep the one of another waiting. */
    due: (now: string) =>
      db
        .sql(
          `SELECT id FROM (
             SELECT id, next_run_at, row_number() OVER (PARTITION BY project_id ORDER BY next_run_at) AS turn
             FROM backup_schedules WHERE enabled = 1 AND next_run_at <= ?
           ) ORDER BY turn, next_run_at LIMIT ${MOST_DUE}`,
        )
        .pluck()
        .all(now) as string[],
    countOf: (project_id: string) =>
      db.sql('SELECT count(*) FROM backup_schedules WHERE project_id = ?').pluck().get(project_id) as number,
    /** Those that something was written of at a time that is still to come. */
    writtenAfter: (at: string) =>
      db
        .sql(
          `SELECT * FROM backup_schedules WHERE enabled = 1 AND max(coalesce(last_run_at, ''), updated_at) > ?`,
        )
        .all(at) as ScheduleRow[],
    namesAt: (destination_id: string) =>
      db
        .sql('SELECT name FROM backup_schedules WHERE destination_id = ? ORDER BY rowid')
        .pluck()
        .all(destination_id) as string[],
    delete: (id: string) => db.sql('DELETE FROM backup_schedules WHERE id = ?').run(id),
    ofTarget: (target_id: string) =>
      db.sql('SELECT * FROM backup_schedules WHERE target_id = ?').all(target_id) as ScheduleRow[],
    /** Whether any were moved. */
    move: (target_id: string, project_id: string): boolean =>
      db.sql('UPDATE backup_schedules SET project_id = ? WHERE target_id = ?').run(project_id, target_id)
        .changes > 0,
  }
}
