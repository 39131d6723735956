import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#server/kernel/clock'
import type { Config } from '#server/kernel/config'
import { type Db, openDb } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import { createMeta } from '#server/kernel/meta'
import { type Migration, migrate } from '#server/kernel/migrate'
import {
  createSecrets,
  loadMasterKey,
  loadNextKey,
  SecretUnreadableError,
  type Secrets,
} from '#server/kernel/secrets'
import { giveUpSpareFile } from '#server/kernel/spare-file'
import { type Directories, directories } from '#server/kernel/directories'
import type { Kernel } from '#server/platform/base'
import { StartError } from '#server/start/start-faults'

/** The addon of the database ends the process without a word on older versions of Node. */
const OLDEST_NODE_API = 10

/** Throws StartError on a Node that is too old. */
export function checkNode(): void {
  if (Number(process.versions.napi) < OLDEST_NODE_API)
    throw new StartError(
      `Node ${process.versions.node} is too old for the database of Portreeve. Start it with npm start, which uses the Node of this project, or use Node 24.`,
    )
}

/** The master key; a database whose secrets it does not open is refused, never started with them lost. */
function openSecrets(config: Config, db: Db, keys: string): Secrets {
  const meta = createMeta(db)
  const check = meta.get('secret_check')
  const path = join(keys, 'secret.key')
  const master = loadMasterKey(path, config.secret_key, check !== undefined)
  const next = config.secret_key === undefined ? loadNextKey(path) : undefined
  const secrets = next ? createSecrets(next, master) : createSecrets(master)
  if (check === undefined) meta.set('secret_check', secrets.seal('portreeve', 'meta/secret_check'))
  else
    requireFitting(
      secrets,
      check,
      config.secret_key === undefined ? `the key file ${path}` : 'PORTREEVE_SECRET_KEY',
    )
  return secrets
}

/** Throws StartError unless the key opens what the database was sealed with. */
function requireFitting(secrets: Secrets, check: string, source: string): void {
  try {
    secrets.open(check, 'meta/secret_check')
  } catch (error) {
    if (!(error instanceof SecretUnreadableError)) throw error
    throw new StartError(
      `${source} is not the key that the secrets of this database are sealed with. Put the right one back: without it they are lost.`,
      { cause: error },
    )
  }
}

/**
 * Throws StartError where a database without a single table lies beside what only an installation
 * has that kept something: a disk that was not mounted or a repair of its file system left it so.
 * A new one would begin with a new administrator, and forget the logs and files of apps that it
 * does not know.
 */
function requireNotLost(db: Db, database: string, { keys, ingress }: Directories): void {
  if (db.sql('SELECT count(*) FROM sqlite_schema').pluck().get() !== 0) return
  const witness = [join(keys, 'secret.key'), ingress].find((path) => existsSync(path))
  if (witness === undefined) return
  throw new StartError(
    `the database ${database} is empty, but ${witness} is of an installation that had one. Put its newest good copy in its place, such as one of the folder backups beside it, or call portreeve restore. To begin anew, move what the folder holds away.`,
  )
}

/** What a running server waits for the lock of another program, with everybody else. */
const LOCK_WAIT_MS = 40

export const databasePath = ({ data_directory }: Config): string => join(data_directory, 'portreeve.db')

/** Opens the data directory: the database, brought up to date, and the keys that belong to it. */
export function openKernel(config: Config, log: Log, migrations: readonly Migration[]): Kernel {
  const paths = directories(config.data_directory)
  if (giveUpSpareFile(config.data_directory))
    log.warn('The disk is full: the room that was kept for a start was given up', {
      directory: config.data_directory,
    })
  const db = openDb(databasePath(config))
  requireNotLost(db, databasePath(config), paths)
  const applied = migrate(db, migrations, paths.backups)
  if (applied.length > 0) log.info('Migrated the database', { migrations: applied.join(', ') })
  const secrets = openSecrets(config, db, paths.keys)
  db.setPatience(LOCK_WAIT_MS)
  return { config, db, clock: systemClock, log, secrets }
}
