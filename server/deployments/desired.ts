import type { Db } from '#server/kernel/db'
import type { ReconcilerPorts } from './reconciler.ts'

/** What should run, read from the rows: the reconciler's view of the installation. */
export function desiredState(
  db: Db,
  /** Late, because apps come after. */
  apps: () => Pick<ReconcilerPorts, 'desired' | 'routed'>,
): Pick<ReconcilerPorts, 'desired' | 'routed' | 'busy' | 'releasesAtWork' | 'deploymentsAtWork'> {
  return {
    desired: () => apps().desired(),
    routed: () => apps().routed(),
    busy: (app_id) =>
      db.sql(`SELECT 1 FROM open_jobs WHERE lane = ? LIMIT 1`).get(`app:${app_id}`) !== undefined,
    releasesAtWork: () =>
      new Set(
        db
          .sql(`SELECT json_extract(state, '$.release_id') FROM open_jobs WHERE kind = 'deploy'`)
          .pluck()
          .all() as string[],
      ),
    deploymentsAtWork: () =>
      new Set(db.sql(`SELECT subject FROM open_jobs WHERE kind = 'deploy'`).pluck().all() as string[]),
  }
}

/**
 * Whether a job changes what runs of an app. A deployment does so from its release command on; before, it only
 * builds.
 */
export const isHeld = (db: Db, app_id: string): boolean =>
  db
    .sql(
      `SELECT 1 FROM open_jobs j LEFT JOIN deployments d ON d.job_id = j.id
       WHERE j.lane = ? AND (j.kind <> 'deploy' OR d.status NOT IN ('queued', 'building')) LIMIT 1`,
    )
    .get(`app:${app_id}`) !== undefined
