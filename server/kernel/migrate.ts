import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from './db.ts'
import { copyWhole } from './whole-copy.ts'

/** One append-only step of the schema: file name and SQL. */
export type Migration = readonly [name: string, sql: string]

const BACKUPS_KEPT = 10

/** The database belongs to a newer version of Portreeve. */
export class DowngradeError extends Error {}

/** A step of the schema that could not be made; nothing of it is kept. */
export class MigrationError extends Error {}

const PREFIX = 'before-migration-'
/** Copies are named after the first step that they do not have. */
const copyName = (step: number) => `${PREFIX}${String(step).padStart(4, '0')}.db`
const copiesIn = (directory: string): string[] =>
  existsSync(directory)
    ? readdirSync(directory)
        .filter((name) => name.startsWith(PREFIX) && name.endsWith('.db'))
        .sort()
    : []

function backUp(db: Db, directory: string, version: number): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, copyName(version + 1))
  copyWhole(db, path)
  for (const name of copiesIn(directory).slice(0, -BACKUPS_KEPT))
    rmSync(join(directory, name), { force: true })
  return path
}

/** The newest copy that a version can open which knows so many steps; else where it would be. */
function wayBack(directory: string, known: number): { path: string; is_there: boolean } {
  const name = copiesIn(directory).findLast((one) => one <= copyName(known + 1))
  return { path: join(directory, name ?? copyName(known + 1)), is_there: name !== undefined }
}

/**
 * Brings the schema up to date. Each migration runs in one transaction together with its version
 * number, so that a crash leaves it done or not done. A copy of the database is taken before the first,
 * unless it is new: one before each would be of schemas that no version in use has, and take the disk
 * and the place of the one that the version from before can open.
 * Refuses a database that is newer than this build.
 * @param backup_directory where the copies go; undefined for a database that holds nothing yet.
 * @returns names of the migrations that ran.
 */
export function migrate(db: Db, migrations: readonly Migration[], backup_directory?: string): string[] {
  const sorted = [...migrations].sort(([a], [b]) => (a < b ? -1 : 1))
  const current = db.raw.pragma('user_version', { simple: true }) as number
  if (current > sorted.length) {
    const { path, is_there } = wayBack(backup_directory ?? '', sorted.length)
    throw new DowngradeError(
      `The database was written by a newer Portreeve (schema ${current}, this version knows ${sorted.length}). ` +
        `Install that version again, or restore the copy ${path}${is_there ? ', which is from before it' : ', if there is one'}.`,
    )
  }
  const applied: string[] = []
  const is_behind = current > 0 && current < sorted.length
  const copy = backup_directory && is_behind ? backUp(db, backup_directory, current) : undefined
  for (const [index, [name, sql]] of sorted.entries()) {
    if (index < current) continue
    try {
      db.tx(() => {
        db.raw.exec(sql)
        db.raw.pragma(`user_version = ${index + 1}`)
      })
    } catch (error) {
      // A full disk or a damaged file says more about itself than about the step.
      if (!/^SQLITE_(ERROR|CONSTRAINT|MISMATCH)/.test(String((error as { code?: unknown }).code))) throw error
      throw new MigrationError(
        `the database could not be brought up to date: ${name} failed (${(error as Error).message}). It is as it was before this step${copy ? `, and the copy ${copy} as it was before all of them` : ''}. Install the version that it was used with, or report this.`,
        { cause: error },
      )
    }
    applied.push(name)
  }
  return applied
}
