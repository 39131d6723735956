import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from '#server/kernel/db'
import { type Migration, migrate } from '#server/kernel/migrate'
import type { Secrets } from '#server/kernel/secrets'
import { SEALED_COLUMNS } from '#server/modules'
import { readMigrations } from '../../scripts/read-migrations.ts'
import { ROOT } from './routes.ts'

export const MIGRATIONS: readonly Migration[] = readMigrations(ROOT)
const MARK = 'plain:'

/**
 * Rows as the product wrote them when a migration was new: `test/fixtures/schemas/<name>.sql`, by the name of the
 * migration without its number. Each file has rows in the tables and columns that its migration made.
 */
export function rowsOf([name]: Migration): string {
  const path = join(ROOT, 'test/fixtures/schemas', name.replace(/^\d+_/, ''))
  if (!existsSync(path))
    throw new Error(`${path} is missing: write rows for every table and column that ${name} makes.`)
  return readFileSync(path, 'utf8')
}

/** An empty database becomes one of this schema, with the rows of its time and of every time before. */
export function fillSchema(db: Db, version: number): void {
  for (const [at, migration] of MIGRATIONS.slice(0, version).entries()) {
    migrate(db, MIGRATIONS.slice(0, at + 1))
    db.raw.exec(rowsOf(migration))
  }
}

/** Seals what the rows have as `plain:…` in sealed columns; the key differs from place to place. */
export function sealRows(db: Db, secrets: Secrets): void {
  for (const { table, column, key, context } of SEALED_COLUMNS) {
    const rows = db.raw
      .prepare(`SELECT *, ${column} AS plain FROM ${table} WHERE ${column} LIKE '${MARK}%'`)
      .all() as Record<string, string>[]
    const where = key.map((name) => `${name} IS @${name}`).join(' AND ')
    for (const row of rows)
      db.raw
        .prepare(`UPDATE ${table} SET ${column} = @sealed WHERE ${where}`)
        .run({ ...row, sealed: secrets.seal(row.plain!.slice(MARK.length), context(row)) })
  }
}
