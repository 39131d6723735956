import Database from 'better-sqlite3'
import { adoptDb, type Db, openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { readMigrations } from '../../scripts/read-migrations.ts'
import { ROOT } from './routes.ts'

let known: Buffer | undefined

/** What a database holds after all migrations, as the bytes of its file. */
function readMigrated(): Buffer {
  const db = openDb(':memory:')
  migrate(db, readMigrations(ROOT))
  const bytes = db.raw.serialize()
  db.close()
  return bytes
}

/** A database in memory with all migrations, without the time that it takes to apply them. */
export function openMigratedDb(): Db {
  known ??= readMigrated()
  return adoptDb(new Database(known))
}

/** Everything that migrations made, in the order it was made in. */
export const schemaOf = (db: Db) =>
  db.raw
    .prepare(
      `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid`,
    )
    .all() as { type: string; name: string; sql: string }[]
