import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from './db.ts'

/** One append-only step of the schema: file name and SQL. */
export type Migration = readonly [name: string, sql: string]

const BACKUPS_KEPT = 10

/** The database belongs to a newer version of Portreeve. */
export class DowngradeError extends Error {}

/** A step of the schema that could not be made; nothing of it is kept. */
export class MigrationError extends Error {}

function backUp(db: Db, directory: string, version: number): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, `before-migration-${String(version + 1).padStart(4, '0')}.db`)
  rmSync(path, { force: true })
  db.raw.prepare('VACUUM INTO ?').run(path)
  const old = readdirSync(directory)
    .filter((name) => name.startsWith('before-migration-'))
    .sort()
    .slice(0, -BACKUPS_KEPT)
  for (const name of old) rmSync(join(directory, name), { force: true })
  return path
}

/**
 * Brings the schema up to date. Each migration runs in one transaction together with its version number, so
 * that a crash leaves it done or not done; a copy of the database is taken before each, unless it is new.
 * Refuses a database that is newer than this build.
 * @param backup_directory where the copies go; undefined for a database that holds nothing yet.
 * @returns names of the migrations that ran.
 */
export function migrate(db: Db, migrations: readonly Migration[], backup_directory?: string): string[] {
  const sorted = [...migrations].sort(([a], [b]) => (a < b ? -1 : 1))
  const current = db.raw.pragma('user_version', { simple: true }) as number
  if (current > sorted.length) {
    const copy = `before-migration-${String(sorted.length + 1).padStart(4, '0')}.db`
    const path = backup_directory ? join(backup_directory, copy) : copy
    throw new DowngradeError(
      `The database was written by a newer Portreeve (schema ${current}, this version knows ${sorted.length}). ` +
        `Install that version again, or restore the copy ${path}${existsSync(path) ? ', which is from before it' : ', if there is one'}.`,
    )
  }
  const applied: string[] = []
  for (const [index, [name, sql]] of sorted.entries()) {
    if (index < current) continue
    const copy = backup_directory && current > 0 ? backUp(db, backup_directory, index) : undefined
    try {
      db.tx(() => {
        db.raw.exec(sql)
        db.raw.pragma(`user_version = ${index + 1}`)
      })
    } catch (error) {
      // A full disk or a damaged file says more about itself than about the step.
      if (!/^SQLITE_(ERROR|CONSTRAINT|MISMATCH)/.test(String((error as { code?: unknown }).code))) throw error
      throw new MigrationError(
        `the database could not be brought up to date: ${name} failed (${(error as Error).message}). It is as it was before this step${copy ? `, and so is the copy ${copy}` : ''}. Install the version that it was used with, or report this.`,
        { cause: error },
      )
    }
    applied.push(name)
  }
  return applied
}
