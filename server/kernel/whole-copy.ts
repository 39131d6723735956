import { renameSync, rmSync } from 'node:fs'
import type { Db } from './db.ts'

/** A copy of a database as one file, whole or not there. In one piece: for programs that serve nobody yet. */
export function copyWhole(db: Db, path: string): void {
  const partial = `${path}.partial`
  rmSync(partial, { force: true })
  try {
    db.raw.prepare('VACUUM INTO ?').run(partial)
    renameSync(partial, path)
  } catch (error) {
    // A part of a copy may be what took the last of the disk.
    rmSync(partial, { force: true })
    throw error
  }
}
