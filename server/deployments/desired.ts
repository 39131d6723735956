import type { Db } from '#server/kernel/db'
import type { ReconcilerPorts } from './reconciler.ts'

/** What should run, read from the rows: the reconciler's view of the installation. */
export function desiredState(
  db: Db,
): Pick<ReconcilerPorts, 'desired' | 'routed' | 'busy' | 'releasesAtWork' | 'deploymentsAtWork'> {
  const open = `status IN ('queued', 'running', 'undoing')`
  return {
    desired: () =>
      db
        .sql(
          `SELECT id, project_id, status, live_release_id AS release_id FROM apps WHERE status IN ('running', 'crashed') AND live_release_id IS NOT NULL`,
        )
        .all() as ReturnType<ReconcilerPorts['desired']>,
    routed: () =>
      db
        .sql(
          `SELECT id, CASE WHEN status IN ('running', 'crashed') THEN live_release_id END AS release_id FROM apps WHERE status <> 'deleting'`,
        )
        .all() as ReturnType<ReconcilerPorts['routed']>,
    busy: (app_id) =>
      db.sql(`SELECT 1 FROM jobs WHERE lane = ? AND ${open} LIMIT 1`).get(`app:${app_id}`) !== undefined,
    releasesAtWork: () =>
      new Set(
        db
          .sql(`SELECT json_extract(state, '$.release_id') FROM jobs WHERE kind = 'deploy' AND ${open}`)
          .pluck()
          .all() as string[],
      ),
    deploymentsAtWork: () =>
      new Set(db.sql(`SELECT subject FROM jobs WHERE kind = 'deploy' AND ${open}`).pluck().all() as string[]),
  }
}
