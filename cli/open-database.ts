import { statSync } from 'node:fs'
import { migrations } from '#migrations'
import type { Config } from '#server/kernel/config'
import { type Db, openDb } from '#server/kernel/db'
import { databasePath } from '#server/start/open-kernel'
import { CommandError } from './terminal.ts'

/**
 * Opens the database of an installation beside a server that may be running. Its schema is never changed from
 * here: that is done by a start of the server.
 */
export function openDatabase(config: Config): Db {
  const path = databasePath(config)
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0)
    throw new CommandError(
      `There is no installation in ${config.data_directory}. Set PORTREEVE_DATA_DIR to the data directory of Portreeve.`,
    )
  const db = openDb(path)
  const found = db.raw.pragma('user_version', { simple: true }) as number
  if (found === migrations.length) return db
  db.close()
  throw new CommandError(
    `The database is of ${found < migrations.length ? 'an older' : 'a newer'} Portreeve (schema ${found}, this version knows ${migrations.length}). ${
      found < migrations.length ? 'Start this version once' : 'Use the command of that version'
    }, then call this again.`,
  )
}
