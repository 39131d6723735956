import { type Actor, isAdministrator } from './access.ts'
import type { Db } from './db.ts'

/** What every kind of resource looks like in overviews and in search. */
export interface ListedResource {
  kind: string
  id: string
  name: string
  status: string | null
  project_id: string
  created_at: string
}
/** Something that a search found, with how well it fits: 0 the very name, 1 its beginning, 2 a part of it. */
export interface Match extends ListedResource {
  rank: 0 | 1 | 2
}

/**
 * One kind of resource that lives in projects. Modules declare theirs; overview, quotas, search and deletion
 * ask all of them.
 */
export interface ResourceSource {
  /** `app`, `database` … */
  kind: string
  /** The least role that sees them in overviews and search. */
  access: 'viewer' | 'developer'
  /** The quota of a project that limits their number, if one does. */
  quota: string | undefined
  count(project_id: string): number
  /** How many of them count for the quota. */
  counted(project_id: string): number
  /** What those of a project were measured to hold; undefined for a kind that holds nothing. */
  storedBytes?(project_id: string): number
  list(project_id: string, limit: number, offset: number): ListedResource[]
  /** Every one of them, whatever its project; for what watches all. */
  all(): ListedResource[]
  /** One that is listed; undefined when there is none of that id. */
  find(id: string): ListedResource | undefined
  /** How many have each status, in these projects (undefined: all). */
  statuses(project_ids: readonly string[] | undefined): { status: string; n: number }[]
  /** Whose name holds the text, in these projects (undefined: all): the best ones, and how many there are. */
  search(
    project_ids: readonly string[] | undefined,
    text: string,
    limit: number,
  ): { rows: Match[]; total: number }
  /** Project of one of them; undefined when there is none of that id. */
  locate(id: string): string | undefined
  /** What others than administrators see of them, where that is less. */
  open?: ResourceSource
}
/** What somebody sees of a kind, and what is searched and counted for them. */
export const openTo = (actor: Actor, source: ResourceSource): ResourceSource =>
  isAdministrator(actor) ? source : (source.open ?? source)

/** Where the resources of one kind are: names of the code, never of a request. */
export interface TableSource {
  kind: string
  table: string
  name_column?: string
  status_column?: string
  project_column?: string
  access?: ResourceSource['access']
  quota?: string
  /** SQL that rows must fulfil to count for the quota, where not all of them do. */
  counted?: string
  /** SQL of what was measured that a row holds, in bytes: it counts for the quota `storage_bytes`. */
  stored_bytes?: string
  /** SQL that rows must fulfil to be listed, searched and counted; all are found by their id. */
  where?: string
  /** SQL of rows that only administrators see, though they are in a project and keep it from being deleted. */
  reserved?: string
}

/** A source over a table that has the columns `id`, `created_at` and one for the project. */
export function createTableSource(db: Db, given: TableSource): ResourceSource {
  const { where = 'TRUE', reserved, ...rest } = given
  if (!reserved) return createSource(db, given)
  return {
    ...createSource(db, given),
    open: createSource(db, { ...rest, where: `${where} AND NOT (${reserved})` }),
  }
}

function createSource(
  db: Db,
  {
    kind,
    table,
    name_column = 'name',
    status_column,
    project_column = 'project_id',
    access = 'viewer',
    quota,
    counted = 'TRUE',
    stored_bytes,
    where = 'TRUE',
  }: TableSource,
): ResourceSource {
  const columns = `'${kind}' AS kind, id, ${name_column} AS name, ${status_column ?? 'NULL'} AS status, ${project_column} AS project_id, created_at`
  const matching = `FROM ${table} WHERE ${where} AND instr(lower(${name_column}), lower(@text)) > 0 AND (@ids IS NULL OR ${project_column} IN (SELECT value FROM json_each(@ids)))`
  const rank = `CASE WHEN lower(${name_column}) = lower(@text) THEN 0 WHEN instr(lower(${name_column}), lower(@text)) = 1 THEN 1 ELSE 2 END`
  const countOf = (which: string) => (project_id: string) =>
    db
      .sql(`SELECT count(*) FROM ${table} WHERE ${which} AND ${project_column} = ?`)
      .pluck()
      .get(project_id) as number
  return {
    kind,
    access,
    quota,
    count: countOf(where),
    counted: countOf(`${where} AND ${counted}`),
    ...(stored_bytes
      ? {
          storedBytes: (project_id) =>
            db
              .sql(`SELECT coalesce(sum(${stored_bytes}), 0) FROM ${table} WHERE ${project_column} = ?`)
              .pluck()
              .get(project_id) as number,
        }
      : {}),
    list: (project_id, limit, offset) =>
      db
        .sql(
          `SELECT ${columns} FROM ${table} WHERE ${where} AND ${project_column} = ? ORDER BY rowid DESC LIMIT ? OFFSET ?`,
        )
        .all(project_id, limit, offset) as ListedResource[],
    all: () => db.sql(`SELECT ${columns} FROM ${table} WHERE ${where}`).all() as ListedResource[],
    find: (id) =>
      db.sql(`SELECT ${columns} FROM ${table} WHERE ${where} AND id = ?`).get(id) as
        | ListedResource
        | undefined,
    statuses: (project_ids) =>
      db
        .sql(
          `SELECT ${status_column ?? 'NULL'} AS status, count(*) AS n FROM ${table}
             WHERE ${where} AND (@ids IS NULL OR ${project_column} IN (SELECT value FROM json_each(@ids))) GROUP BY 1`,
        )
        .all({ ids: project_ids ? JSON.stringify(project_ids) : null }) as { status: string; n: number }[],
    search(project_ids, text, limit) {
      const values = { text, ids: project_ids ? JSON.stringify(project_ids) : null }
      const rows = db
        .sql(
          `SELECT ${columns}, ${rank} AS rank ${matching} ORDER BY rank, length(${name_column}), ${name_column}, id LIMIT @limit`,
        )
        .all({ ...values, limit }) as Match[]
      return { rows, total: db.sql(`SELECT count(*) ${matching}`).pluck().get(values) as number }
    },
    locate: (id) =>
      db.sql(`SELECT ${project_column} FROM ${table} WHERE id = ?`).pluck().get(id) as string | undefined,
  }
}
