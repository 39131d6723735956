import type { Db } from '#server/kernel/db'
import { type Page, selectPage } from '#server/kernel/page'
import type { DomainStatus } from './schema.ts'

/** A row of `domains`. */
export interface DomainRow {
  id: string
  app_id: string
  project_id: string
  hostname: string
  kind: 'automatic' | 'custom'
  status: DomainStatus
  path: string
  port: number | null
  ssl_mode: 'off' | 'acme' | 'custom' | 'self_signed' | 'external'
  created_at: string
  updated_at: string
}

/** SQL of domains and nothing else. */
export function createDomainRepository(db: Db) {
  return {
    page: (project_ids: readonly string[] | undefined, filter: { app_id?: string; status?: string }, limit: number, offset: number): Page<DomainRow> =>
      selectPage<DomainRow>(db, { table: 'domains', project_ids, equals: filter, limit, offset, uncounted: true }),
    ofApp: (app_id: string) => db.sql('SELECT * FROM domains WHERE app_id = ? ORDER BY rowid').all(app_id) as DomainRow[],
    insert: (row: DomainRow) => db.sql(
      `INSERT INTO domains (id, app_id, project_id, hostname, kind, status, path, port, ssl_mode, created_at, updated_at)
       VALUES (@id, @app_id, @project_id, @hostname, @kind, @status, @path, @port, @ssl_mode, @created_at, @updated_at)`).run(row),
    /** Gives the app's automatic domain another name; false when the name is taken. */
    renameAutomatic: (app_id: string, hostname: string, at: string): boolean =>
      db.sql(`UPDATE OR IGNORE domains SET hostname = ?, updated_at = ? WHERE app_id = ? AND kind = 'automatic' AND hostname <> ?`).run(hostname, at, app_id, hostname).changes === 1,
    automaticOf: (app_id: string) => db.sql(`SELECT hostname FROM domains WHERE app_id = ? AND kind = 'automatic'`).pluck().get(app_id) as string | undefined,
    automatic: () => db.sql(`SELECT d.app_id, a.name FROM domains d JOIN apps a ON a.id = d.app_id WHERE d.kind = 'automatic'`).all() as { app_id: string; name: string }[],
    /** Compare-and-set of several at once; the ids that changed. */
    setStatuses: (ids: readonly string[], from: DomainStatus, to: DomainStatus, at: string) =>
      db.sql('UPDATE domains SET status = ?, updated_at = ? WHERE status = ? AND id IN (SELECT value FROM json_each(?)) RETURNING id').pluck().all(to, at, from, JSON.stringify(ids)) as string[],
  }
}
export type DomainRepository = ReturnType<typeof createDomainRepository>
