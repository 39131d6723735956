import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { UptimeTarget } from './probe.ts'

/** A row of `uptime_checks`. */
export interface CheckRow extends UptimeTarget {
  id: string
  project_id: string
  app_id: string | null
  name: string
  interval_s: number
  failures_needed: number
  enabled: number
  public: number
  status: 'unknown' | 'up' | 'down'
  failures: number
  last_error: string | null
  last_latency_ms: number | null
  checked_at: string | null
  changed_at: string | null
  next_at: string
  created_at: string
  updated_at: string
}
/** Results of an interval, added up. Times are seconds since 1970. */
export interface ResultRow {
  at: number
  checks: number
  failures: number
  latency_sum_ms: number
  latency_peak_ms: number
  last_error: string | null
}
/** Lengths of the intervals in which results are kept, in seconds, and for how long. */
export const RESULT_STEPS = [
  { step_s: 300, kept_s: 7 * 86_400 },
  { step_s: 86_400, kept_s: 400 * 86_400 },
] as const

const COLUMNS =
  'id, project_id, app_id, name, kind, target, interval_s, timeout_s, expected_status, expected_text, days_left, failures_needed, enabled, public, status, failures, last_error, last_latency_ms, checked_at, changed_at, next_at, created_at, updated_at'

/** SQL of uptime checks and nothing else. */
export function createUptimeRepository(db: Db) {
  return {
    page: (
      project_ids: readonly string[] | undefined,
      { project_id, app_id }: { project_id?: Wanted; app_id?: Wanted },
      ...span: Span
    ): Page<CheckRow> =>
      selectPage<CheckRow>(
        db,
        {
          table: 'uptime_checks',
          project_ids,
          equals: { project_id, app_id },
        },
        span,
      ),
    find: (id: string) => db.sql('SELECT * FROM uptime_checks WHERE id = ?').get(id) as CheckRow | undefined,
    countOf: (project_id: string) =>
      db.sql('SELECT count(*) FROM uptime_checks WHERE project_id = ?').pluck().get(project_id) as number,
    ofApp: (app_id: string) =>
      db.sql('SELECT * FROM uptime_checks WHERE app_id = ?').all(app_id) as CheckRow[],
    /** Checks of an app go where it went; whether it has any. */
    move: (app_id: string, project_id: string, at: string): boolean =>
      db
        .sql('UPDATE uptime_checks SET project_id = ?, updated_at = ? WHERE app_id = ?')
        .run(project_id, at, app_id).changes > 0,
    /** Checks of a project that its status page shows. */
    shown: (project_id: string) =>
      db
        .sql('SELECT * FROM uptime_checks WHERE project_id = ? AND public = 1 AND enabled = 1 ORDER BY name')
        .all(project_id) as CheckRow[],
    /**
     * Those whose time has come, longest ago first; of each project so many at most.
     * @param ahead time that no check waits for: one that does was put there by a clock that was wrong.
     */
    due: (at: string, ahead: string, of_each: number) =>
      db
        .sql(
          `SELECT id, project_id FROM (
             SELECT id, project_id, next_at, row_number() OVER (PARTITION BY project_id ORDER BY next_at, id) AS place
             FROM uptime_checks WHERE enabled = 1 AND (next_at <= ? OR next_at > ?))
           WHERE place <= ? ORDER BY next_at, id`,
        )
        .all(at, ahead, of_each) as Pick<CheckRow, 'id' | 'project_id'>[],
    insert: (row: CheckRow) =>
      db.sql(`INSERT INTO uptime_checks (${COLUMNS}) VALUES (${COLUMNS.replace(/\w+/g, '@$&')})`).run(row),
    update: (row: CheckRow) =>
      db
        .sql(
          `UPDATE uptime_checks SET ${COLUMNS.replace(/\w+/g, '$& = @$&').replace('id = @id, ', '')} WHERE id = @id`,
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM uptime_checks WHERE id = ?').run(id),
    count: (check_id: string, step_s: number, at: number, error: string | null, latency_ms: number) =>
      db
        .sql(
          `INSERT INTO uptime_results (check_id, step_s, at, checks, failures, latency_sum_ms, latency_peak_ms, last_error)
           VALUES (@check_id, @step_s, @at, 1, @failed, @latency_ms, @latency_ms, @error)
           ON CONFLICT (check_id, step_s, at) DO UPDATE SET checks = checks + 1, failures = failures + @failed,
             latency_sum_ms = latency_sum_ms + @latency_ms, latency_peak_ms = max(latency_peak_ms, @latency_ms),
             last_error = coalesce(@error, last_error)`,
        )
        .run({ check_id, step_s, at, error, latency_ms, failed: Number(error !== null) }),
    results: (check_id: string, step_s: number, from: number, to: number) =>
      db
        .sql(
          `SELECT at, checks, failures, latency_sum_ms, latency_peak_ms, last_error FROM uptime_results
           WHERE check_id = ? AND step_s = ? AND at >= ? AND at < ? ORDER BY at`,
        )
        .all(check_id, step_s, from, to) as ResultRow[],
    totals: (check_id: string, from: number) =>
      db
        .sql(
          `SELECT coalesce(sum(checks), 0) AS checks, coalesce(sum(failures), 0) AS failures,
             coalesce(sum(latency_sum_ms), 0) AS latency_sum_ms
           FROM uptime_results WHERE check_id = ? AND step_s = 86400 AND at >= ?`,
        )
        .get(check_id, from) as Pick<ResultRow, 'checks' | 'failures' | 'latency_sum_ms'>,
    ids: () => db.sql('SELECT id FROM uptime_checks').pluck().all() as string[],
    /** Forgets some of what a check saw before a time; returns how much. */
    prune: (check_id: string, step_s: number, before: number) =>
      forgetSome(
        db,
        {
          table: 'uptime_results',
          where: 'check_id = ? AND step_s = ? AND at < ?',
          key: 'check_id, step_s, at',
        },
        check_id,
        step_s,
        before,
      ),
  }
}
export type UptimeRepository = ReturnType<typeof createUptimeRepository>
