import type { Db } from './db.ts'

/** A page of rows with the number of all that match. */
export interface Page<T> {
  rows: T[]
  total: number
}
/** What a list may show: projects (undefined: all) and equality filters. */
export interface PageQuery {
  table: string
  project_ids: readonly string[] | undefined
  /** Column -> value; undefined values do not filter. */
  equals: Record<string, string | undefined>
  /** Column and text that it must contain, ignoring case. */
  contains?: { column: string; text: string | undefined }
  /** SQL that every row of the list fulfils; the counters count such rows alone. */
  where?: string
  limit: number
  offset: number
  /** Set for tables without counters: their total is counted each time. */
  uncounted?: boolean
}

/** SQLite takes at most 500 selects in one; beyond this many projects the rows are scanned in their order. */
const MAX_MERGED = 100

/**
 * Newest first, by insertion. Without filters the total comes from the counters that triggers keep, so that a
 * list costs the same at any size. Table and column names come from the code, never from a request.
 */
export function selectPage<T>(db: Db, query: PageQuery): Page<T> {
  const filters = Object.entries(query.equals).filter(([, value]) => value !== undefined)
  const parts = filters.map(([column]) => `${column} = ?`)
  const values: unknown[] = filters.map(([, value]) => value)
  if (query.contains?.text) {
    parts.push(`instr(lower(${query.contains.column}), lower(?)) > 0`)
    values.push(query.contains.text)
  }
  const unfiltered = parts.length === 0 && !query.uncounted
  if (query.where) parts.push(query.where)
  const { project_ids } = query
  if (unfiltered && project_ids && project_ids.length > 1 && project_ids.length <= MAX_MERGED) {
    return { rows: merged<T>(db, query, project_ids), total: counted(db, query.table, project_ids) }
  }
  if (project_ids?.length === 1) {
    parts.push('project_id = ?')
    values.push(project_ids[0])
  } else if (project_ids) {
    // The plus sign keeps SQLite on the order of insertion instead of sorting what an index would deliver.
    parts.push('+project_id IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(project_ids))
  }
  const clause = parts.length ? `WHERE ${parts.join(' AND ')}` : ''
  const rows = db
    .sql(`SELECT * FROM ${query.table} ${clause} ORDER BY rowid DESC LIMIT ? OFFSET ?`)
    .all(...values, query.limit, query.offset) as T[]
  return {
    rows,
    total: unfiltered
      ? counted(db, query.table, project_ids)
      : (db
          .sql(`SELECT count(*) FROM ${query.table} ${clause}`)
          .pluck()
          .get(...values) as number),
  }
}

/**
 * The newest of several projects: each gives its newest from its index, so that a few old rows among many of
 * others are found at once.
 */
function merged<T>(
  db: Db,
  { table, where = 'TRUE', limit, offset }: PageQuery,
  project_ids: readonly string[],
): T[] {
  const newest = project_ids
    .map(
      () =>
        `SELECT rowid AS n FROM (SELECT rowid FROM ${table} WHERE ${where} AND project_id = ? ORDER BY rowid DESC LIMIT ?)`,
    )
    .join(' UNION ALL ')
  const values = project_ids.flatMap((id) => [id, limit + offset])
  return db
    .sql(
      `SELECT * FROM ${table} WHERE rowid IN (SELECT n FROM (${newest}) ORDER BY n DESC LIMIT ? OFFSET ?) ORDER BY rowid DESC`,
    )
    .all(...values, limit, offset) as T[]
}

/** Sum of the counters of a table for some scopes; undefined means the whole table. */
export function counted(db: Db, table: string, scopes: readonly string[] | undefined): number {
  const names = scopes ? scopes.map((scope) => `${table}:${scope}`) : [table]
  return db
    .sql('SELECT coalesce(sum(n), 0) FROM row_counts WHERE scope IN (SELECT value FROM json_each(?))')
    .pluck()
    .get(JSON.stringify(names)) as number
}
