import { describe, expect, it } from 'vitest'
import { type Db, openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { fillSchema, MIGRATIONS, rowsOf } from '#test/support/schema-fixtures'
import { schemaOf } from '#test/support/schema'

type Row = Record<string, unknown>
const tables = (db: Db) =>
  schemaOf(db)
    .filter(({ type }) => type === 'table')
    .map(({ name }) => name)
const columns = (db: Db, table: string) =>
  (db.raw.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
const rows = (db: Db, table: string) => db.raw.prepare(`SELECT * FROM "${table}"`).all() as Row[]
const keyed = (row: Row, names: readonly string[]) => JSON.stringify(names.map((name) => row[name]))

/** What a later migration says about rows from before it, by table: the row as it has to be then. */
const CHANGED: Record<string, (row: Row) => Row> = {
  // Of an app's deployments exactly one is live since `states`.
  deployments: (row) => (row.id === 'dep_0003a' ? { ...row, status: 'replaced' } : row),
}

function open<T>(work: (db: Db) => T): T {
  const db = openDb(':memory:')
  try {
    return work(db)
  } finally {
    db.close()
  }
}

describe('a database of an older Portreeve', () => {
  it.each(MIGRATIONS.map(([name], at) => [name, at + 1] as const))(
    'that has the schema of %s keeps every row with the newest schema',
    (_name, version) =>
      open((db) => {
        fillSchema(db, version)
        const before = tables(db).map((name) => ({ name, columns: columns(db, name), rows: rows(db, name) }))
        migrate(db, MIGRATIONS)
        for (const table of before) {
          const kept = new Set(rows(db, table.name).map((row) => keyed(row, table.columns)))
          const now = CHANGED[table.name] ?? ((row: Row) => row)
          const lost = table.rows.filter((row) => !kept.has(keyed(now(row), table.columns)))
          expect(lost, `rows of ${table.name}`).toEqual([])
          expect(rows(db, table.name).length, table.name).toBe(table.rows.length)
        }
        expect(db.raw.pragma('foreign_key_check')).toEqual([])
        expect(db.raw.pragma('integrity_check', { simple: true })).toBe('ok')
      }),
  )
  it('has rows in every table that a migration makes, and a value in every column that it adds', () =>
    open((db) => {
      const empty: string[] = []
      for (const [at, migration] of MIGRATIONS.entries()) {
        const known = new Map(tables(db).map((name) => [name, columns(db, name)]))
        migrate(db, MIGRATIONS.slice(0, at + 1))
        db.raw.exec(rowsOf(migration))
        for (const table of tables(db)) {
          const old = known.get(table)
          const added = old === undefined ? [] : columns(db, table).filter((name) => !old.includes(name))
          // Rows of `row_counts` come by triggers, with the first resource that is counted.
          const is_empty = old === undefined && table !== 'row_counts' && rows(db, table).length === 0
          if (is_empty) empty.push(`${migration[0]}: ${table}`)
          for (const name of added)
            if (!rows(db, table).some((row) => row[name] !== null))
              empty.push(`${migration[0]}: ${table}.${name}`)
        }
      }
      expect(empty).toEqual([])
    }))
})
