import type { Db } from '#server/kernel/db'
import type { Resource } from './schema.ts'

/** One kind of resource that lives in projects. Domains bring theirs at composition; overview, quotas, search and deletion ask all of them. */
export interface ResourceSource {
  /** `app`, `database` … */
  kind: string
  /** The least role that sees them in overviews and search. */
  access: 'viewer' | 'developer'
  count(project_id: string): number
  list(project_id: string, limit: number, offset: number): Resource[]
  /** Whose name holds the text, in these projects (undefined: all). */
  search(project_ids: readonly string[] | undefined, text: string, limit: number): Resource[]
}

/** Where the resources of one kind are: names of the code, never of a request. */
export interface TableSource { kind: string; table: string; name_column?: string; status_column?: string; access?: ResourceSource['access'] }

/** A source over a table that has the columns `id`, `project_id` and `created_at`. */
export function createTableSource(db: Db, { kind, table, name_column = 'name', status_column, access = 'viewer' }: TableSource): ResourceSource {
  const columns = `'${kind}' AS kind, id, ${name_column} AS name, ${status_column ?? 'NULL'} AS status, project_id, created_at`
  return {
    kind, access,
    count: (project_id) => db.sql(`SELECT count(*) FROM ${table} WHERE project_id = ?`).pluck().get(project_id) as number,
    list: (project_id, limit, offset) => db.sql(`SELECT ${columns} FROM ${table} WHERE project_id = ? ORDER BY rowid DESC LIMIT ? OFFSET ?`).all(project_id, limit, offset) as Resource[],
    search: (project_ids, text, limit) => db.sql(
      `SELECT ${columns} FROM ${table} WHERE instr(lower(${name_column}), lower(@text)) > 0 AND (@ids IS NULL OR project_id IN (SELECT value FROM json_each(@ids)))
       ORDER BY length(${name_column}), ${name_column} LIMIT @limit`).all({ text, limit, ids: project_ids ? JSON.stringify(project_ids) : null }) as Resource[],
  }
}
