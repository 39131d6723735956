import type { Db } from './db.ts'
import { own } from './own.ts'

/** What a filter asks for: one value, or any of several; none are no filter. */
export type Wanted<T extends string = string> = T | readonly T[] | undefined
/** The order that a caller asked for: columns by their weight. */
export type Sort = readonly { column: string; descending: boolean }[]
/** Which rows of a list: at most `limit` after the first `offset`, newest first unless `sort` says otherwise. */
export type Span = readonly [limit: number, offset: number, sort?: Sort | undefined]

/** The values that a filter asks for; undefined where it asks for nothing. */
export function wantedValues<T extends string>(desired: Wanted<T>): readonly T[] | undefined {
  if (typeof desired === 'string') return [desired]
  return desired?.length ? desired : undefined
}
/** Whether a value is one of those that a filter asks for. */
export const isWanted = (expected: Wanted, value: string | null): boolean =>
  wantedValues(expected)?.includes(value ?? '') ?? true
/** A filter as a parameter of SQL that reads `@x IS NULL OR column IN (SELECT value FROM json_each(@x))`. */
export const wantedJson = (wanted: Wanted): string | null => {
  const values = wantedValues(wanted)
  return values ? JSON.stringify(values) : null
}

/** Columns that tell when a row was written, a number of its own for each. */
const BY_INSERTION: ReadonlySet<string> = new Set(['rowid', 'seq'])

/**
 * ORDER BY of a list. `usual` is the order that nobody has to ask for; it comes last always, so that rows with
 * equal values keep their place from page to page.
 */
export function orderBy(sort: Sort | undefined, usual: string): string {
  const asked: string[] = []
  for (const { column, descending } of sort ?? []) {
    const order = descending ? 'DESC' : 'ASC'
    // The order of insertion: read as it stands, where with a collation all rows would be sorted.
    if (BY_INSERTION.has(column)) return `ORDER BY ${[...asked, `${column} ${order}`].join(', ')}`
    asked.push(`${column} COLLATE NOCASE ${order}`)
  }
  return `ORDER BY ${[...asked, usual].join(', ')}`
}

/** The same order for rows in memory; rows with equal values stay as they are. */
export function sortRows<T extends object>(rows: readonly T[], sort: Sort | undefined): T[] {
  const read = (row: T, column: string) =>
    (own(row as Record<string, unknown>, column) ?? null) as string | number | null
  const compare = (a: string | number | null, b: string | number | null): number => {
    if (a === null || b === null) return Number(b === null) - Number(a === null)
    if (typeof a === 'number' && typeof b === 'number') return a - b
    const [x, y] = [String(a).toLowerCase(), String(b).toLowerCase()]
    if (x === y) return 0
    return x < y ? -1 : 1
  }
  return [...rows].sort((a, b) => {
    for (const { column, descending } of sort ?? []) {
      const order = compare(read(a, column), read(b, column))
      if (order !== 0) return descending ? -order : order
    }
    return 0
  })
}

/** A page of rows with the number of all that match. */
export interface Page<T> {
  rows: T[]
  total: number
}
/** What a list may show: projects (undefined: all) and equality filters. */
export interface PageQuery {
  table: string
  /** Those that the rows have; all where none are named. Of a hundred rows nobody reads what each has megabytes of. */
  columns?: string
  project_ids: readonly string[] | undefined
  /** Column -> value, or several of which one must fit; undefined values do not filter. */
  equals?: Record<string, Wanted>
  /** Column and text that it must contain, ignoring case. */
  contains?: { column: string; text: string | undefined }
  /** SQL that every row of the list fulfils; the counters count such rows alone. */
  where?: string
  /** Set for tables whose counters triggers keep; the total of others is counted each time. */
  counted?: boolean
}

/** SQLite takes at most 500 selects in one; beyond this many projects the rows are scanned in their order. */
const MAX_MERGED = 100

/**
 * Newest first, by insertion. Without filters the total of a `counted` table comes from its counters, so that
 * its list costs the same at any size. Table and column names come from the code, never from a request.
 */
export function selectPage<T>(db: Db, query: PageQuery, [limit, offset, sort]: Span): Page<T> {
  const { parts, values } = equalities(query.equals ?? {})
  if (query.contains?.text) {
    parts.push(`instr(lower(${query.contains.column}), lower(?)) > 0`)
    values.push(query.contains.text)
  }
  const unfiltered = parts.length === 0 && query.counted
  if (query.where) parts.push(query.where)
  const { project_ids } = query
  if (
    unfiltered &&
    !sort?.length &&
    project_ids &&
    project_ids.length > 1 &&
    project_ids.length <= MAX_MERGED
  ) {
    return {
      rows: merged<T>(db, query, project_ids, limit, offset),
      total: counted(db, query.table, project_ids),
    }
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
  return {
    rows: rowsOf<T>(db, query, { clause, values }, [limit, offset, sort]),
    total: unfiltered
      ? counted(db, query.table, project_ids)
      : (db
          .sql(`SELECT count(*) FROM ${query.table} ${clause}`)
          .pluck()
          .get(...values) as number),
  }
}

/**
 * The rows of one page. What is sorted or filtered is looked for by those columns alone, which an index may hold, and
 * only the rows of the page are read whole: ten thousand that may each have a quarter of a megabyte would all go
 * through it.
 */
function rowsOf<T>(
  db: Db,
  { table, columns = '*', equals = {} }: PageQuery,
  { clause, values }: { clause: string; values: readonly unknown[] },
  [limit, offset, sort]: Span,
): T[] {
  const found = (what: string) =>
    db.sql(`SELECT ${what} FROM ${table} ${clause} ${orderBy(sort, 'rowid DESC')} LIMIT ? OFFSET ?`)
  const is_filtered = Object.values(equals).some((wanted) => wantedValues(wanted))
  const is_as_it_stands = !sort?.length || BY_INSERTION.has(sort[0]!.column)
  if (is_as_it_stands && !is_filtered) return found(columns).all(...values, limit, offset) as T[]
  const places = found('rowid')
    .pluck()
    .all(...values, limit, offset) as number[]
  const row = db.sql(`SELECT ${columns} FROM ${table} WHERE rowid = ?`)
  return places.flatMap((place) => (row.get(place) as T | undefined) ?? [])
}

/** One value is compared as such, so that an index which ends with it is of use; several are looked up. */
function equalities(equals: NonNullable<PageQuery['equals']>): { parts: string[]; values: unknown[] } {
  const filters = Object.entries(equals).flatMap(([column, wanted]) => {
    const values = wantedValues(wanted)
    return values ? [{ column, values }] : []
  })
  return {
    parts: filters.map(({ column, values }) =>
      values.length === 1 ? `${column} = ?` : `${column} IN (SELECT value FROM json_each(?))`,
    ),
    values: filters.map(({ values }) => (values.length === 1 ? values[0] : JSON.stringify(values))),
  }
}

/**
 * The newest of several projects: each gives its newest from its index, so that a few old rows among many of
 * others are found at once.
 */
function merged<T>(
  db: Db,
  { table, columns = '*', where = 'TRUE' }: PageQuery,
  project_ids: readonly string[],
  limit: number,
  offset: number,
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
      `SELECT ${columns} FROM ${table} WHERE rowid IN (SELECT n FROM (${newest}) ORDER BY n DESC LIMIT ? OFFSET ?) ORDER BY rowid DESC`,
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

/** What has more rows of a table than so many, of those whose ids begin in some way: `app_`. */
export function scopesAbove(db: Db, table: string, prefix: string, most: number): string[] {
  const from = `${table}:${prefix}`
  const scopes = db
    .sql('SELECT scope FROM row_counts WHERE scope >= ? AND scope < ? AND n > ?')
    .pluck()
    .all(from, `${from}\u{10ffff}`, most) as string[]
  return scopes.map((scope) => scope.slice(table.length + 1))
}
