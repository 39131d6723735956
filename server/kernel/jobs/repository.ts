import type { Db } from '../db.ts'
import { forgetSome } from '../forget.ts'
import { orderBy, type Wanted, wantedJson, type Span } from '#server/kernel/page'
import type { JobRow, JobStatus, StepRow, StepStatus } from './definition.ts'

/**
 * Jobs that have not ended, as the indexes of those have it: SQLite takes an index of a part of the
 * rows only where a query says the same words. Those that have ended are many, and nobody's next.
 */
const IS_OPEN = (job: string) => `${job}.status IN ('queued', 'running', 'undoing')`

/** Whether `b` has a lane, or waits for it longer, where `j` waits for it. */
const IS_AHEAD = `${IS_OPEN('b')} AND (b.status <> 'queued' OR b.rowid < j.rowid)`

/** Jobs that have ended and are nobody's, as their index has it. */
const IS_PAST = `finished_at IS NOT NULL AND kind <> 'deploy'`

/** A job as lists have it: what it has found out may be megabytes. */
export type ListedJob = Omit<JobRow, 'state'>
const LISTED =
  'id, kind, lane, subject, project_id, status, payload, failure, cancel_requested, resumes, created_at, started_at, finished_at'

/** What a list of jobs is narrowed to. */
export interface ListedBy {
  status?: Wanted
  kind?: Wanted
}
/** Only what is asked for is looked at: with a hundred thousand jobs each word costs milliseconds. */
function listing(project_ids: readonly string[] | undefined, { status, kind }: ListedBy) {
  const asked = Object.entries({
    project_id: project_ids ? JSON.stringify(project_ids) : null,
    kind: wantedJson(kind),
    status: wantedJson(status),
  }).filter(([, names]) => names !== null)
  const parts = asked.map(([column]) => `${column} IN (SELECT value FROM json_each(@${column}))`)
  return { clause: parts.join(' AND ') || 'TRUE', values: Object.fromEntries(asked) }
}

/** SQL of jobs and their steps. */
export function createJobRepository(db: Db) {
  return {
    insert(
      job: Pick<
        JobRow,
        'id' | 'kind' | 'lane' | 'subject' | 'project_id' | 'payload' | 'state' | 'created_at'
      >,
      steps: readonly string[],
      lanes: readonly string[] = [],
    ) {
      db.sql(`INSERT INTO jobs (id, kind, lane, subject, project_id, status, payload, state, created_at)
              VALUES (@id, @kind, @lane, @subject, @project_id, 'queued', @payload, @state, @created_at)`).run(
        job,
      )
      for (const [position, name] of steps.entries()) {
        db.sql(`INSERT INTO job_steps (job_id, position, name, status) VALUES (?, ?, ?, 'pending')`).run(
          job.id,
          position,
          name,
        )
      }
      for (const lane of lanes) db.sql('INSERT INTO job_lanes (job_id, lane) VALUES (?, ?)').run(job.id, lane)
    },
    find: (id: string) => db.sql('SELECT * FROM jobs WHERE id = ?').get(id) as JobRow | undefined,
    findBySubject: (subject: string) =>
      db.sql('SELECT * FROM jobs WHERE subject = ? ORDER BY rowid DESC LIMIT 1').get(subject) as
        | JobRow
        | undefined,
    steps: (job_id: string) =>
      db.sql('SELECT * FROM job_steps WHERE job_id = ? ORDER BY position').all(job_id) as StepRow[],
    /** Jobs that were under way when the process ended. */
    interrupted: () =>
      db
        .sql(
          `SELECT * FROM jobs WHERE status IN ('running', 'undoing') AND ${IS_OPEN('jobs')} ORDER BY rowid`,
        )
        .all() as JobRow[],
    /** Projects that jobs are of. */
    projects: () => db.sql('SELECT DISTINCT project_id FROM jobs').pluck().all() as (string | null)[],
    /**
     * The oldest queued job of each lane in which nothing runs, but none of these projects, null for the platform. One
     * that needs several lanes begins once it is the oldest in all of them: it holds none while it
     * waits, so that no two can wait for each other.
     */
    runnable: (limit: number, without: readonly (string | null)[] = []) =>
      db
        .sql(
          `SELECT * FROM jobs j WHERE status = 'queued' AND ${IS_OPEN('j')}
         AND coalesce(project_id, '') NOT IN (SELECT value FROM json_each(@without))
         AND NOT EXISTS (SELECT 1 FROM jobs b WHERE b.lane = j.lane AND ${IS_AHEAD})
         AND NOT EXISTS (SELECT 1 FROM job_lanes l JOIN jobs b ON b.id = l.job_id WHERE l.lane = j.lane AND ${IS_AHEAD})
         AND NOT EXISTS (SELECT 1 FROM job_lanes o JOIN jobs b ON b.lane = o.lane WHERE o.job_id = j.id AND ${IS_AHEAD})
         AND NOT EXISTS (SELECT 1 FROM job_lanes o JOIN job_lanes l ON l.lane = o.lane JOIN jobs b ON b.id = l.job_id
           WHERE o.job_id = j.id AND ${IS_AHEAD})
       ORDER BY rowid LIMIT @limit`,
        )
        .all({ limit, without: JSON.stringify(without.map((project) => project ?? '')) }) as JobRow[],
    /** Lets queued jobs of a lane wait for another lane as well. */
    joinLane: (lane: string, other: string): void =>
      void db
        .sql(
          `INSERT OR IGNORE INTO job_lanes (job_id, lane) SELECT l.job_id, @other FROM open_lanes l JOIN jobs j ON j.id = l.job_id
           WHERE l.lane = @lane AND j.status = 'queued' AND j.lane <> @other`,
        )
        .run({ lane, other }),
    setStatus(
      id: string,
      from: JobStatus,
      to: JobStatus,
      at: string,
      failure: string | null = null,
    ): boolean {
      const ended = to === 'succeeded' || to === 'failed' || to === 'cancelled'
      return (
        db
          .sql(
            `UPDATE jobs SET status = @to, failure = coalesce(@failure, failure),
           started_at = coalesce(started_at, CASE WHEN @to = 'running' THEN @at END),
           finished_at = CASE WHEN @ended = 1 THEN @at ELSE finished_at END
         WHERE id = @id AND status = @from`,
          )
          .run({ id, from, to, at, failure, ended: ended ? 1 : 0 }).changes === 1
      )
    },
    requestCancel: (id: string) => db.sql('UPDATE jobs SET cancel_requested = 1 WHERE id = ?').run(id),
    /** Ends the way forward; from now on steps are undone. */
    beginUndo: (id: string, failure: string | null) =>
      db
        .sql(
          `UPDATE jobs SET status = 'undoing', failure = ?, resumes = 0 WHERE id = ? AND status = 'running'`,
        )
        .run(failure, id),
    countResume: (id: string) => db.sql('UPDATE jobs SET resumes = resumes + 1 WHERE id = ?').run(id),
    /** An orderly stop takes back beforehand what the next start will count. */
    forgiveResume: (id: string): void =>
      void db.sql('UPDATE jobs SET resumes = resumes - 1 WHERE id = ?').run(id),
    resetResumes: (id: string) => db.sql('UPDATE jobs SET resumes = 0 WHERE id = ? AND resumes <> 0').run(id),
    /**
     * Gives a job the steps that this version of Portreeve knows; those of the same name keep what
     * they reached.
     */
    alignSteps(job_id: string, names: readonly string[]) {
      const rows = db
        .sql('SELECT * FROM job_steps WHERE job_id = ? ORDER BY position')
        .all(job_id) as StepRow[]
      if (rows.length === names.length && rows.every((row, position) => row.name === names[position])) return
      db.tx(() => {
        db.sql('DELETE FROM job_steps WHERE job_id = ?').run(job_id)
        for (const [position, name] of names.entries()) {
          const known = rows.find((row) => row.name === name)
          db.sql(
            `INSERT INTO job_steps (job_id, position, name, status, attempts, started_at, duration_ms, failure) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
          ).run(
            job_id,
            position,
            name,
            known?.status ?? 'pending',
            known?.attempts ?? 0,
            known?.started_at ?? null,
            known?.duration_ms ?? null,
            known?.failure ?? null,
          )
        }
      })
    },
    saveState: (id: string, state: string) => db.sql('UPDATE jobs SET state = ? WHERE id = ?').run(state, id),
    saveStep(
      job_id: string,
      position: number,
      change: {
        status: StepStatus
        started_at?: string
        duration_ms?: number
        attempts?: number
        failure?: string | null
      },
    ) {
      db.sql(
        `UPDATE job_steps SET status = @status, started_at = coalesce(@started_at, started_at), duration_ms = coalesce(@duration_ms, duration_ms),
           attempts = coalesce(@attempts, attempts), failure = @failure WHERE job_id = @job_id AND position = @position`,
      ).run({
        job_id,
        position,
        started_at: null,
        duration_ms: null,
        attempts: null,
        failure: null,
        ...change,
      })
    },
    /** How many jobs a list has. */
    count(project_ids: readonly string[] | undefined, filter: ListedBy): number {
      const { clause, values } = listing(project_ids, filter)
      return db
        .sql(`SELECT count(*) FROM jobs INDEXED BY jobs_listed WHERE ${clause}`)
        .pluck()
        .get(values) as number
    },
    page(
      project_ids: readonly string[] | undefined,
      filter: ListedBy,
      ...[limit, offset, sort]: Span
    ): ListedJob[] {
      const { clause, values } = listing(project_ids, filter)
      const order = orderBy(sort, 'rowid DESC')
      return db
        .sql(
          `SELECT ${LISTED} FROM jobs WHERE rowid IN (SELECT rowid FROM jobs INDEXED BY jobs_listed
             WHERE ${clause} ${order} LIMIT @limit OFFSET @offset) ${order}`,
        )
        .all({ ...values, limit, offset }) as ListedJob[]
    },
    /**
     * Forgets some of the ended jobs that ended before a time, or of which there are more than so
     * many; returns how many. Those that a deployment shows its steps from go with it.
     */
    prune: (before: string, most: number): number =>
      forgetSome(db, { table: 'jobs', where: `finished_at < ? AND ${IS_PAST}` }, before) ||
      forgetSome(
        db,
        {
          table: 'jobs',
          where: `${IS_PAST} AND finished_at <= (SELECT finished_at FROM jobs WHERE ${IS_PAST} ORDER BY finished_at DESC LIMIT 1 OFFSET ?)`,
        },
        most,
      ),
  }
}
export type JobRepository = ReturnType<typeof createJobRepository>
