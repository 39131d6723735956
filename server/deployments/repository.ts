import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { counted, orderBy, type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { DeploymentStatus } from './schema.ts'

export interface DeploymentRow {
  id: string
  app_id: string
  project_id: string
  number: number
  status: DeploymentStatus
  trigger: string
  request: string
  plan: string | null
  branch: string | null
  commit_sha: string | null
  commit_message: string | null
  commit_author: string | null
  image: string | null
  release_id: string | null
  failure: string | null
  job_id: string | null
  created_by: string | null
  created_at: string
  started_at: string | null
  live_at: string | null
  finished_at: string | null
}
/** A deployment as lists have it: a plan may hold a Dockerfile of a megabyte. */
export type ListedDeployment = Omit<DeploymentRow, 'plan'>
/** A deployment of an archive that was uploaded. */
export interface ArchivedDeployment {
  id: string
  /** Name of the archive. */
  upload: string
  failed_step: string | null
  finished_at: string | null
}
const LISTED =
  'id, app_id, project_id, number, status, trigger, request, branch, commit_sha, commit_message, commit_author, image, release_id, failure, job_id, created_by, created_at, started_at, live_at, finished_at'
/** What was asked for; JSON of `deployments.request`. */
export interface DeploymentRequest {
  branch?: string
  commit?: string
  /** The branch's newest commit will do when that one is gone: set for the deployment of a restored app. */
  or_newest?: boolean
  /** Set for the deployment of a restored app: the restore was admitted with what the app may use. */
  admitted?: boolean
  no_cache?: boolean
  /** Release to take over without a build: that of a rollback, and of a restart once its job runs. */
  from_release?: string
  /** Deployment whose release that is. */
  from_deployment?: string
  /**
   * Set when the image of that release is gone from the engine: it is made again, from the same
   * source and with the same configuration.
   */
  rebuild?: boolean
  /** Only these services of a stack are started anew. */
  services?: string[]
  /** Set for a restart that takes the variables of the app as they are now, instead of those of its release. */
  fresh_variables?: boolean
  /** Why the platform deploys, where nobody asked: what became of the server that the app is on. */
  reason?: string
  /** File name of the uploaded archive below `<data>/uploads`. */
  upload?: string
}
/** What was asked for when a deployment was queued. */
export const requestOf = (row: Pick<DeploymentRow, 'request'>): DeploymentRequest =>
  JSON.parse(row.request) as DeploymentRequest

type Change = Partial<
  Pick<
    DeploymentRow,
    | 'request'
    | 'plan'
    | 'branch'
    | 'commit_sha'
    | 'commit_message'
    | 'commit_author'
    | 'image'
    | 'release_id'
    | 'failure'
    | 'job_id'
    | 'started_at'
    | 'live_at'
    | 'finished_at'
  >
>

/** SQL of deployments and nothing else. */
export function createDeploymentRepository(db: Db) {
  return {
    insert: (
      row: Pick<
        DeploymentRow,
        | 'id'
        | 'app_id'
        | 'project_id'
        | 'number'
        | 'trigger'
        | 'request'
        | 'branch'
        | 'created_by'
        | 'created_at'
      >,
    ) =>
      db
        .sql(
          `INSERT INTO deployments (id, app_id, project_id, number, status, trigger, request, branch, created_by, created_at)
       VALUES (@id, @app_id, @project_id, @number, 'queued', @trigger, @request, @branch, @created_by, @created_at)`,
        )
        .run(row),
    find: (id: string) =>
      db.sql('SELECT * FROM deployments WHERE id = ?').get(id) as DeploymentRow | undefined,
    projectOf: (id: string) =>
      db.sql('SELECT project_id FROM deployments WHERE id = ?').pluck().get(id) as string | undefined,
    /** The newest deployment that tells the branch that the app is built from: nobody chose one for it alone. */
    lastBranched: (app_id: string) =>
      db
        .sql(
          `SELECT id, branch FROM deployments WHERE app_id = ? AND branch IS NOT NULL
             AND (trigger = 'push' OR json_extract(request, '$.branch') IS NULL) ORDER BY number DESC LIMIT 1`,
        )
        .get(app_id) as { id: string; branch: string } | undefined,
    latest: (app_id: string) =>
      db.sql('SELECT * FROM deployments WHERE app_id = ? ORDER BY number DESC LIMIT 1').get(app_id) as
        | DeploymentRow
        | undefined,
    /** The newest one before another that went live and was not made of an earlier release. */
    lastGood: ({ app_id, number }: Pick<DeploymentRow, 'app_id' | 'number'>) =>
      db
        .sql(
          `SELECT id FROM deployments WHERE app_id = ? AND number < ? AND status IN ('live', 'replaced')
             AND trigger NOT IN ('rollback', 'restart', 'scale') ORDER BY number DESC LIMIT 1`,
        )
        .pluck()
        .get(app_id, number) as string | undefined,
    /** The newest deployment that was to be built without caches. */
    lastUncached: (app_id: string) =>
      db
        .sql(
          `SELECT id FROM deployments WHERE app_id = ? AND json_extract(request, '$.no_cache') = 1
           ORDER BY number DESC LIMIT 1`,
        )
        .pluck()
        .get(app_id) as string | undefined,
    withStatus: (app_id: string, statuses: readonly DeploymentStatus[]) =>
      db
        .sql(
          'SELECT * FROM deployments WHERE app_id = ? AND status IN (SELECT value FROM json_each(?)) ORDER BY number',
        )
        .all(app_id, JSON.stringify(statuses)) as DeploymentRow[],
    /** Deployments whose job has not ended: queued, at work, or live but still soaking. */
    unfinished: (app_id: string) =>
      db
        .sql(
          `SELECT d.* FROM deployments d JOIN open_jobs j ON j.id = d.job_id
       WHERE j.lane = 'app:' || ? AND d.app_id = ? ORDER BY d.number`,
        )
        .all(app_id, app_id) as DeploymentRow[],
    page: (
      project_ids: readonly string[] | undefined,
      filter: { app_id?: Wanted; status?: Wanted; trigger?: Wanted },
      ...span: Span
    ): Page<ListedDeployment> =>
      selectPage(
        db,
        { table: 'deployments', columns: LISTED, counted: true, project_ids, equals: filter },
        span,
      ),
    /** The deployments of an app that were made of an archive, the newest first. */
    archived: (app_id: string) =>
      db
        .sql(
          `SELECT id, request ->> '$.upload' AS upload, failure ->> '$.step' AS failed_step, finished_at
           FROM deployments WHERE app_id = ? AND request ->> '$.upload' IS NOT NULL ORDER BY number DESC`,
        )
        .all(app_id) as ArchivedDeployment[],
    /** File names of the archives that deployments were made of. */
    archiveNames: () =>
      new Set(
        db
          .sql(
            `SELECT DISTINCT request ->> '$.upload' FROM deployments WHERE request ->> '$.upload' IS NOT NULL`,
          )
          .pluck()
          .all() as string[],
      ),
    history(app_id: string, ...[limit, offset, sort]: Span): Page<ListedDeployment> {
      const rows = db
        .sql(
          `SELECT ${LISTED} FROM deployments WHERE app_id = ? ${orderBy(sort, 'number DESC')} LIMIT ? OFFSET ?`,
        )
        .all(app_id, limit, offset) as ListedDeployment[]
      return { rows, total: counted(db, 'deployments', [app_id]) }
    },
    /** Forgets some of all but the newest deployments of an app, with their releases; returns how many. */
    forgetOld: (app_id: string, live_id: string, kept: number): number =>
      forgetSome(
        db,
        {
          table: 'deployments',
          where: `app_id = ? AND id <> ? AND number <= (SELECT max(number) FROM deployments WHERE app_id = ?) - ?`,
        },
        app_id,
        live_id,
        app_id,
        kept,
      ),
    /** The newest deployments of an app, newest first. */
    newestIds: (app_id: string, limit: number) =>
      db
        .sql('SELECT id FROM deployments WHERE app_id = ? ORDER BY number DESC LIMIT ?')
        .pluck()
        .all(app_id, limit) as string[],
    setStatus: (id: string, from: DeploymentStatus, to: DeploymentStatus) =>
      db.sql('UPDATE deployments SET status = ? WHERE id = ? AND status = ?').run(to, id, from).changes === 1,
    change(id: string, change: Change) {
      const keys = Object.keys(change)
      db.sql(`UPDATE deployments SET ${keys.map((key) => `${key} = @${key}`).join(', ')} WHERE id = @id`).run(
        {
          ...change,
          id,
        },
      )
    },
  }
}
export type DeploymentRepository = ReturnType<typeof createDeploymentRepository>
