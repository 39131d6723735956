import type { Db } from '#server/kernel/db'
import type { Jobs } from '#server/kernel/jobs/jobs'
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
      db.sql(`SELECT 1 FROM open_lanes WHERE lane = ? LIMIT 1`).get(`app:${app_id}`) !== undefined,
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
 * Whether a job changes what runs of an app. A deployment does so from its release command on;
 * before, it only builds.
 */
export const isHeld = (db: Db, app_id: string): boolean =>
  db
    .sql(
      `SELECT 1 FROM open_lanes l JOIN open_jobs j ON j.id = l.job_id LEFT JOIN deployments d ON d.job_id = j.id
       WHERE l.lane = ? AND (j.kind <> 'deploy' OR d.status NOT IN ('queued', 'building')) LIMIT 1`,
    )
    .get(`app:${app_id}`) !== undefined

/**
 * Whether a job has the data of a volume in hand that does not hold the lane of this app, which is about to start on
 * them. One that has not begun waits for the app from now on: if the app waited for it, two apps and two restores
 * could wait for one another.
 */
export const hasToWaitForData = (
  db: Db,
  jobs: Pick<Jobs, 'joinLane'>,
  volume_id: string,
  app_id: string,
): boolean =>
  db.tx(() => {
    jobs.joinLane(`volume:${volume_id}`, `app:${app_id}`)
    const at_work = db
      .sql(
        `SELECT 1 FROM open_lanes l WHERE l.lane = ? AND NOT EXISTS (
           SELECT 1 FROM open_lanes o WHERE o.job_id = l.job_id AND o.lane = ?) LIMIT 1`,
      )
      .get(`volume:${volume_id}`, `app:${app_id}`)
    return at_work !== undefined
  })
