import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { orderBy, type Page, selectPage, type Wanted, wantedJson, type Span } from '#server/kernel/page'
import type { CronJob, CronRun, RunStatus } from './schema.ts'

/** A row of `cron_jobs`. */
export interface CronJobRow {
  id: string
  project_id: string
  app_id: string
  name: string
  expression: string
  timezone: string
  command: string | null
  url: string | null
  method: string | null
  request: string | null
  timeout_s: number
  overlap: CronJob['overlap']
  catch_up: CronJob['catch_up']
  retries: number
  retry_delay_s: number
  enabled: number
  source: CronJob['source']
  next_run_at: string | null
  created_at: string
  updated_at: string
}
/** A row of `cron_runs`. */
export interface CronRunRow extends Omit<CronRun, 'truncated'> {
  project_id: string
  truncated: number
  job_id: string | null
}
type RunChange = Partial<
  Pick<
    CronRunRow,
    | 'attempts'
    | 'exit_code'
    | 'http_status'
    | 'error'
    | 'output'
    | 'truncated'
    | 'job_id'
    | 'started_at'
    | 'finished_at'
    | 'duration_ms'
  >
>
const OPEN = `status IN ('queued', 'running')`

/** SQL of cron jobs and their runs, and nothing else. */
export function createCronRepository(db: Db) {
  return {
    find: (id: string) => db.sql('SELECT * FROM cron_jobs WHERE id = ?').get(id) as CronJobRow | undefined,
    page: (
      project_ids: readonly string[] | undefined,
      filter: { project_id?: Wanted; app_id?: Wanted },
      ...span: Span
    ): Page<CronJobRow> =>
      selectPage<CronJobRow>(
        db,
        {
          table: 'cron_jobs',
          project_ids,
          equals: { project_id: filter.project_id, app_id: filter.app_id },
        },
        span,
      ),
    ofApp: (app_id: string) =>
      db.sql('SELECT * FROM cron_jobs WHERE app_id = ? ORDER BY rowid').all(app_id) as CronJobRow[],
    insert: (row: CronJobRow) =>
      db
        .sql(
          `INSERT INTO cron_jobs (id, project_id, app_id, name, expression, timezone, command, url, method, request, timeout_s, overlap, catch_up,
           retries, retry_delay_s, enabled, source, next_run_at, created_at, updated_at)
           VALUES (@id, @project_id, @app_id, @name, @expression, @timezone, @command, @url, @method, @request, @timeout_s, @overlap, @catch_up,
           @retries, @retry_delay_s, @enabled, @source, @next_run_at, @created_at, @updated_at)`,
        )
        .run(row),
    update: (row: CronJobRow) =>
      db
        .sql(
          `UPDATE cron_jobs SET name = @name, expression = @expression, timezone = @timezone, command = @command, url = @url, method = @method,
           request = @request, timeout_s = @timeout_s, overlap = @overlap, catch_up = @catch_up, retries = @retries, retry_delay_s = @retry_delay_s,
           enabled = @enabled, next_run_at = @next_run_at, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
    setNext: (id: string, next_run_at: string | null) =>
      db.sql('UPDATE cron_jobs SET next_run_at = ? WHERE id = ?').run(next_run_at, id),
    delete: (id: string) => db.sql('DELETE FROM cron_jobs WHERE id = ?').run(id),
    due: (now: string, limit: number) =>
      db
        .sql(
          'SELECT * FROM cron_jobs WHERE enabled = 1 AND next_run_at IS NOT NULL AND next_run_at <= ? ORDER BY next_run_at LIMIT ?',
        )
        .all(now, limit) as CronJobRow[],
    /** When the next job of all is due. */
    earliest: () =>
      db.sql('SELECT min(next_run_at) FROM cron_jobs WHERE enabled = 1').pluck().get() as string | null,
    /** The next of those that are enabled: of a hundred at a time, none with the command that it runs. */
    enabledAfter: (place: number) =>
      db
        .sql(
          'SELECT rowid AS place, id, updated_at FROM cron_jobs WHERE enabled = 1 AND rowid > ? ORDER BY rowid LIMIT 100',
        )
        .all(place) as { place: number; id: string; updated_at: string }[],
    appsWithJobs: () =>
      db.sql(`SELECT DISTINCT app_id FROM cron_jobs WHERE source = 'repository'`).pluck().all() as string[],

    run: (id: string) => db.sql('SELECT * FROM cron_runs WHERE id = ?').get(id) as CronRunRow | undefined,
    hasSlot: (cron_job_id: string, slot: string) =>
      db.sql('SELECT 1 FROM cron_runs WHERE cron_job_id = ? AND slot = ?').get(cron_job_id, slot) !==
      undefined,
    insertRun: (row: Omit<CronRunRow, 'attempts' | 'output' | 'truncated' | 'exit_code' | 'http_status'>) =>
      db
        .sql(
          `INSERT INTO cron_runs (id, cron_job_id, app_id, project_id, slot, trigger, status, error, job_id, created_by, created_at, started_at, finished_at, duration_ms)
           VALUES (@id, @cron_job_id, @app_id, @project_id, @slot, @trigger, @status, @error, @job_id, @created_by, @created_at, @started_at, @finished_at, @duration_ms)`,
        )
        .run(row),
    changeRun(id: string, change: RunChange) {
      const keys = Object.keys(change)
      db.sql(`UPDATE cron_runs SET ${keys.map((key) => `${key} = @${key}`).join(', ')} WHERE id = @id`).run({
        ...change,
        id,
      })
    },
    /** Forgets what the oldest runs of a job printed, until all of them together kept no more than so many bytes. */
    boundOutput: (cron_job_id: string, most_bytes: number) =>
      db
        .sql(
          `UPDATE cron_runs SET output = '', truncated = 1 WHERE rowid IN (
             SELECT place FROM (
               SELECT rowid AS place, octet_length(output) AS bytes,
                 sum(octet_length(output)) OVER (ORDER BY rowid DESC) AS bytes_until FROM cron_runs WHERE cron_job_id = ?)
             WHERE bytes > 0 AND bytes_until > ?)`,
        )
        .run(cron_job_id, most_bytes),
    /** Compare-and-set; false when the status has changed meanwhile. */
    setRunStatus: (id: string, from: RunStatus, to: RunStatus): boolean =>
      db.sql('UPDATE cron_runs SET status = ? WHERE id = ? AND status = ?').run(to, id, from).changes === 1,
    openRuns: (cron_job_id: string) =>
      db
        .sql(`SELECT * FROM cron_runs WHERE cron_job_id = ? AND ${OPEN} ORDER BY rowid`)
        .all(cron_job_id) as CronRunRow[],
    countOpen: (project_id: string) =>
      db
        .sql(`SELECT count(*) FROM cron_runs WHERE project_id = ? AND ${OPEN}`)
        .pluck()
        .get(project_id) as number,
    openRunsOfApp: (app_id: string) =>
      db
        .sql(
          `SELECT r.* FROM cron_runs r JOIN cron_jobs j ON j.id = r.cron_job_id WHERE j.app_id = ? AND r.${OPEN}`,
        )
        .all(app_id) as CronRunRow[],
    lastRun: (cron_job_id: string) =>
      db.sql('SELECT * FROM cron_runs WHERE cron_job_id = ? ORDER BY rowid DESC LIMIT 1').get(cron_job_id) as
        | CronRunRow
        | undefined,
    runs(cron_job_id: string, status: Wanted<RunStatus>, ...[limit, offset, sort]: Span): Page<CronRunRow> {
      const matching =
        'FROM cron_runs WHERE cron_job_id = ? AND (? IS NULL OR status IN (SELECT value FROM json_each(?)))'
      const desired = wantedJson(status)
      const values = [cron_job_id, desired, desired]
      return {
        rows: db
          .sql(`SELECT * ${matching} ${orderBy(sort, 'rowid DESC')} LIMIT ? OFFSET ?`)
          .all(...values, limit, offset) as CronRunRow[],
        total: db
          .sql(`SELECT count(*) ${matching}`)
          .pluck()
          .get(...values) as number,
      }
    },
    ids: () => db.sql('SELECT id FROM cron_jobs').pluck().all() as string[],
    /**
     * Forgets some of the ended runs of a job beyond its newest, and of those from before a time; returns how many.
     */
    pruneRuns: (cron_job_id: string, kept: number, before: string): number =>
      forgetSome(
        db,
        {
          table: 'cron_runs',
          where: `cron_job_id = ? AND NOT ${OPEN} AND (created_at < ? OR rowid <= (
            SELECT rowid FROM cron_runs WHERE cron_job_id = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?))`,
        },
        cron_job_id,
        before,
        cron_job_id,
        kept,
      ),
    /** Forgets some of the ended runs of all jobs of an app; returns how many. */
    forgetRuns: (app_id: string): number =>
      forgetSome(
        db,
        {
          table: 'cron_runs',
          where: `cron_job_id IN (SELECT id FROM cron_jobs WHERE app_id = ?) AND NOT ${OPEN}`,
        },
        app_id,
      ),
  }
}
export type CronRepository = ReturnType<typeof createCronRepository>
