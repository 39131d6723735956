import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { AppStatus } from './schema.ts'

/** Where an app's code comes from. */
export interface AppSource {
  source: string
  git_url: string | null
  branch: string | null
  image: string | null
  dockerfile: string | null
  compose: string | null
  compose_path: string | null
  base_directory: string
}

/** A row of `apps`; texts in JSON columns are parsed by `configurationOf`. */
export interface AppRow extends AppSource {
  id: string
  name: string
  project_id: string
  /** Set for the app of a preview, which shows in no list of apps. */
  preview_id: string | null
  status: AppStatus
  build: string
  port: number | null
  health_check: string
  replicas: number
  limits: string
  processes: string
  auto_deploy: number
  watch_paths: string
  soak_seconds: number
  ssh_key_id: string | null
  git_credential_id: string | null
  node_id: string | null
  live_deployment_id: string | null
  live_release_id: string | null
  last_error: string | null
  next_number: number
  created_at: string
  updated_at: string
}
export type AppColumns = Omit<AppRow, 'live_deployment_id' | 'live_release_id' | 'last_error' | 'next_number'>

/** Columns that a user may change; keys of an update come from this list only. */
export const CHANGEABLE = [
  'name',
  'git_url',
  'branch',
  'image',
  'dockerfile',
  'compose',
  'compose_path',
  'base_directory',
  'build',
  'port',
  'health_check',
  'replicas',
  'limits',
  'processes',
  'auto_deploy',
  'watch_paths',
  'soak_seconds',
  'ssh_key_id',
  'git_credential_id',
  'node_id',
] as const

/** SQL of apps and nothing else. */
export function createAppRepository(db: Db) {
  return {
    insert: (row: AppColumns) =>
      db
        .sql(
          `INSERT INTO apps (id, name, project_id, preview_id, status, source, git_url, branch, image, dockerfile, compose, compose_path, base_directory, build, port, health_check, replicas, limits, processes,
         auto_deploy, watch_paths, soak_seconds, ssh_key_id, git_credential_id, node_id, created_at, updated_at)
       VALUES (@id, @name, @project_id, @preview_id, @status, @source, @git_url, @branch, @image, @dockerfile, @compose, @compose_path, @base_directory, @build, @port, @health_check, @replicas, @limits, @processes,
         @auto_deploy, @watch_paths, @soak_seconds, @ssh_key_id, @git_credential_id, @node_id, @created_at, @updated_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM apps WHERE id = ?').get(id) as AppRow | undefined,
    findByName: (name: string) => db.sql('SELECT * FROM apps WHERE name = ?').get(name) as AppRow | undefined,
    /** Apps of a project that are not on their way out. */
    inProject: (project_id: string) =>
      db.sql(`SELECT * FROM apps WHERE project_id = ? AND status <> 'deleting'`).all(project_id) as AppRow[],
    projectOf: (id: string) =>
      db.sql('SELECT project_id FROM apps WHERE id = ?').pluck().get(id) as string | undefined,
    desired: () =>
      db
        .sql(
          `SELECT id, project_id, preview_id, status, live_release_id AS release_id FROM apps WHERE status IN ('running', 'crashed') AND live_release_id IS NOT NULL`,
        )
        .all() as {
        id: string
        project_id: string
        preview_id: string | null
        status: string
        release_id: string
      }[],
    routed: () =>
      db
        .sql(
          `SELECT id, CASE WHEN status IN ('running', 'crashed') THEN live_release_id END AS release_id FROM apps WHERE status <> 'deleting'`,
        )
        .all() as { id: string; release_id: string | null }[],
    /** Apps that may run on this server alone. */
    pinnedTo: (node_id: string) =>
      db
        .sql(`SELECT id, name FROM apps WHERE node_id = ? AND status <> 'deleting' ORDER BY rowid`)
        .all(node_id) as Pick<AppRow, 'id' | 'name'>[],
    sources: (project_id?: string) =>
      db
        .sql(
          'SELECT id, name, project_id, preview_id, git_url, image, ssh_key_id, git_credential_id FROM apps WHERE @project_id IS NULL OR project_id = @project_id',
        )
        .all({ project_id: project_id ?? null }) as Pick<
        AppRow,
        'id' | 'name' | 'project_id' | 'preview_id' | 'git_url' | 'image' | 'ssh_key_id' | 'git_credential_id'
      >[],
    page: (
      project_ids: readonly string[] | undefined,
      filter: { id?: Wanted; status?: Wanted; q?: string },
      ...span: Span
    ): Page<AppRow> =>
      selectPage(
        db,
        {
          table: 'apps',
          counted: true,
          where: 'preview_id IS NULL',
          project_ids,
          equals: { id: filter.id, status: filter.status },
          contains: { column: 'name', text: filter.q },
        },
        span,
      ),
    update(id: string, change: Partial<Record<(typeof CHANGEABLE)[number], unknown>>, at: string) {
      const keys = CHANGEABLE.filter((key) => change[key] !== undefined)
      if (keys.length === 0) return
      db.sql(
        `UPDATE apps SET ${keys.map((key) => `${key} = @${key}`).join(', ')}, updated_at = @at WHERE id = @id`,
      ).run({ ...change, id, at })
    },
    /** Compare-and-set; false when the status has changed meanwhile. */
    setStatus: (id: string, from: AppStatus, to: AppStatus, at: string): boolean =>
      db.sql('UPDATE apps SET status = ?, updated_at = ? WHERE id = ? AND status = ?').run(to, at, id, from)
        .changes === 1,
    setLastError: (id: string, text: string | null) =>
      db.sql('UPDATE apps SET last_error = ? WHERE id = ?').run(text, id),
    setLive: (id: string, deployment_id: string | null, release_id: string | null, at: string) =>
      db
        .sql('UPDATE apps SET live_deployment_id = ?, live_release_id = ?, updated_at = ? WHERE id = ?')
        .run(deployment_id, release_id, at, id),
    setSource: (id: string, source: string) =>
      db.sql('UPDATE apps SET source = ? WHERE id = ?').run(source, id),
    /** The next deployment number of an app. */
    nextNumber: (id: string) =>
      db
        .sql('UPDATE apps SET next_number = next_number + 1 WHERE id = ? RETURNING next_number - 1')
        .pluck()
        .get(id) as number,
    move: (id: string, project_id: string, at: string) =>
      db.sql('UPDATE apps SET project_id = ?, updated_at = ? WHERE id = ?').run(project_id, at, id),
    delete: (id: string) => db.sql('DELETE FROM apps WHERE id = ?').run(id),
  }
}
export type AppRepository = ReturnType<typeof createAppRepository>
