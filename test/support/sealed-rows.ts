import type Database from 'better-sqlite3'
import type { Secrets } from '#server/kernel/secrets'
import { SEALED_COLUMNS } from '#server/modules'

interface Column {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
}

/**
 * Puts rows with a sealed value into every column that is listed as sealed; the rows mean nothing otherwise.
 * Returns how many.
 */
export function fillSealedColumns(db: Database.Database, secrets: Secrets, rows: number): number {
  db.pragma('foreign_keys = OFF')
  db.pragma('ignore_check_constraints = ON')
  db.transaction(() => {
    for (const { table, column, key, context } of SEALED_COLUMNS) {
      const columns = db.pragma(`table_info(${table})`) as Column[]
      for (let n = 0; n < rows; n += 1) {
        const dummy = `{"n":"${table}-${column}-${n}"}`
        const row: Record<string, string | number> = Object.fromEntries(
          columns
            .filter(
              ({ name, notnull, dflt_value, pk }) =>
                key.includes(name) || pk > 0 || (notnull === 1 && dflt_value === null),
            )
            .map(({ name, type }) => [name, type === 'INTEGER' || type === 'REAL' ? 0 : dummy]),
        )
        row[column] = secrets.seal(plainOf(table, column), context(row as Record<string, string>))
        db.prepare(
          `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
            .map((name) => `@${name}`)
            .join(', ')})`,
        ).run(row)
      }
    }
  })()
  return SEALED_COLUMNS.length * rows
}
export const plainOf = (table: string, column: string) => `plain text of ${table}.${column}`

/** Every sealed value with what it was sealed for. */
export function sealedValues(db: Database.Database): { name: string; context: string; sealed: string }[] {
  return SEALED_COLUMNS.flatMap(({ table, column, context }) =>
    (
      db.prepare(`SELECT *, ${column} AS sealed FROM ${table} WHERE ${column} LIKE 'v1.%'`).all() as Record<
        string,
        string
      >[]
    ).map((row) => ({ name: `${table}.${column}`, context: context(row), sealed: row.sealed! })),
  )
}

/** What a key opens of these values, by text; `unreadable` for the rest. */
export const openedWith = (secrets: Secrets, values: ReturnType<typeof sealedValues>): string[] =>
  values.map(({ sealed, context }) => {
    try {
      return secrets.open(sealed, context)
    } catch {
      return 'unreadable'
    }
  })
