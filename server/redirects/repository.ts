import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { Redirect } from './schema.ts'

/** A row of `redirects`. */
export interface RedirectRow {
  id: string
  domain_id: string
  app_id: string
  project_id: string
  kind: Redirect['kind']
  source: string
  target: string
  status: Redirect['status']
  keep_query: number
  priority: number
  enabled: number
  created_at: string
  updated_at: string
}

/** Which rules a list is of. */
export interface RedirectFilter {
  project_id?: Wanted
  domain_id?: Wanted
  app_id?: Wanted
}

/** SQL of redirects and nothing else. */
export function createRedirectRepository(db: Db) {
  return {
    page: (
      project_ids: readonly string[] | undefined,
      { project_id, domain_id, app_id }: RedirectFilter,
      ...span: Span
    ): Page<RedirectRow> =>
      selectPage<RedirectRow>(
        db,
        {
          table: 'redirects',
          project_ids,
          equals: { project_id, domain_id, app_id },
        },
        span,
      ),
    find: (id: string) => db.sql('SELECT * FROM redirects WHERE id = ?').get(id) as RedirectRow | undefined,
    projectOf: (id: string) =>
      db.sql('SELECT project_id FROM redirects WHERE id = ?').pluck().get(id) as string | undefined,
    /** How many rules a domain or a project has, and how long they are together. */
    measure: (owner: { domain_id: string } | { project_id: string }) => {
      const [column, id] =
        'domain_id' in owner ? ['domain_id', owner.domain_id] : ['project_id', owner.project_id]
      return db
        .sql(
          `SELECT count(*) AS count, coalesce(sum(length(source) + length(target)), 0) AS characters FROM redirects WHERE ${column} = ?`,
        )
        .get(id) as { count: number; characters: number }
    },
    enabled: (domain_ids: readonly string[]) =>
      db
        .sql(
          'SELECT * FROM redirects WHERE enabled = 1 AND domain_id IN (SELECT value FROM json_each(?)) ORDER BY priority, rowid',
        )
        .all(JSON.stringify(domain_ids)) as RedirectRow[],
    /** Domains of a project that have enabled rules. */
    ruled: (project_id: string) =>
      db
        .sql('SELECT DISTINCT domain_id FROM redirects WHERE project_id = ? AND enabled = 1')
        .pluck()
        .all(project_id) as string[],
    ofKind: (domain_id: string, kind: Redirect['kind']) =>
      db
        .sql('SELECT * FROM redirects WHERE domain_id = ? AND kind = ? ORDER BY rowid')
        .all(domain_id, kind) as RedirectRow[],
    insert: (row: RedirectRow) =>
      db
        .sql(
          `INSERT INTO redirects (id, domain_id, app_id, project_id, kind, source, target, status, keep_query, priority, enabled, created_at, updated_at)
       VALUES (@id, @domain_id, @app_id, @project_id, @kind, @source, @target, @status, @keep_query, @priority, @enabled, @created_at, @updated_at)`,
        )
        .run(row),
    update: (row: RedirectRow) =>
      db
        .sql(
          `UPDATE redirects SET kind = @kind, source = @source, target = @target, status = @status, keep_query = @keep_query, priority = @priority, enabled = @enabled, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM redirects WHERE id = ?').run(id),
  }
}
