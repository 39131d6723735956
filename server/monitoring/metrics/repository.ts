import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { COLUMNS, type Interval } from './interval.ts'

export type SubjectKind = 'server' | 'app' | 'database'

/** SQL of metrics and nothing else. Times are seconds since 1970. */
export function createMetricRepository(db: Db) {
  const columns = COLUMNS.join(', ')
  const values = COLUMNS.map((column) => `@${column}`).join(', ')
  return {
    /** Number of a subject, made when it is new. */
    number: (kind: SubjectKind, subject: string): number => {
      const found = db
        .sql('SELECT number FROM metric_subjects WHERE kind = ? AND subject = ?')
        .pluck()
        .get(kind, subject) as number | undefined
      return (
        found ??
        Number(
          db.sql('INSERT INTO metric_subjects (kind, subject) VALUES (?, ?)').run(kind, subject)
            .lastInsertRowid,
        )
      )
    },
    find: (kind: SubjectKind, subject: string) =>
      db
        .sql('SELECT number FROM metric_subjects WHERE kind = ? AND subject = ?')
        .pluck()
        .get(kind, subject) as number | undefined,
    write: (subject: number, step_s: number, interval: Interval) =>
      db
        .sql(
          `INSERT OR REPLACE INTO metrics (subject, step_s, ${columns}) VALUES (@subject, @step_s, ${values})`,
        )
        .run({ ...interval, subject, step_s }),
    /** Intervals of one subject, oldest first. */
    range: (subject: number, step_s: number, from: number, to: number) =>
      db
        .sql(
          `SELECT ${columns} FROM metrics WHERE subject = ? AND step_s = ? AND at >= ? AND at < ? ORDER BY at`,
        )
        .all(subject, step_s, from, to) as Interval[],
    /** The newest interval of each subject of those which begin in a time: of what runs, however much there is. */
    recent: (step_s: number, from: number, to: number) =>
      db
        .sql(
          `SELECT kind, subjects.subject AS id, max(at) AS newest, ${columns} FROM metrics INDEXED BY metrics_age
             JOIN metric_subjects AS subjects ON subjects.number = metrics.subject
             WHERE step_s = ? AND at >= ? AND at < ? GROUP BY metrics.subject`,
        )
        .all(step_s, from, to) as (Interval & { kind: SubjectKind; id: string })[],
    /** Subjects that have intervals which begin in a time. */
    subjects: (step_s: number, from: number, to: number) =>
      db
        .sql(
          `SELECT DISTINCT subject FROM metrics INDEXED BY metrics_age WHERE step_s = ? AND at >= ? AND at < ?`,
        )
        .pluck()
        .all(step_s, from, to) as number[],
    isThere: (subject: number): boolean =>
      db.sql('SELECT 1 FROM metric_subjects WHERE number = ?').get(subject) !== undefined,
    /** The last interval that begins up to a time: those after it were written by a clock that was wrong. */
    latest: (step_s: number, until: number) =>
      db.sql('SELECT max(at) FROM metrics WHERE step_s = ? AND at <= ?').pluck().get(step_s, until) as
        | number
        | null,
    /** The first interval that begins at or after a time. */
    oldest: (step_s: number, from: number) =>
      db.sql('SELECT min(at) FROM metrics WHERE step_s = ? AND at >= ?').pluck().get(step_s, from) as
        | number
        | null,
    /** Forgets some of the intervals from before a time; returns how many. */
    prune: (step_s: number, before: number) =>
      forgetSome(
        db,
        { table: 'metrics', where: 'step_s = ? AND at < ?', key: 'subject, step_s, at' },
        step_s,
        before,
      ),
    forget: (kind: SubjectKind, subject: string) =>
      db.sql('DELETE FROM metric_subjects WHERE kind = ? AND subject = ?').run(kind, subject),
  }
}
export type MetricRepository = ReturnType<typeof createMetricRepository>
