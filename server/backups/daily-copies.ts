import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { freeForBackups } from '#server/kernel/disk-reserve'
import type { Log } from '#server/kernel/log'
import { copyDatabase } from './copy-database.ts'
import type { PlatformContents } from './targets/platform-archive.ts'

/** Days that have a copy. */
const KEPT = 3
const PREFIX = 'daily-'
const NAME = /^daily-\d{4}-\d{2}-\d{2}\.db$/
/** What a copy is called until it was read to its end, and what is opened leaves beside it when it is cut off. */
const UNFINISHED = /^daily-.*\.partial/

export interface DailyCopyOptions {
  db: Db
  /** Where copies lie, those from before an upgrade among them. */
  directory: string
  clock: Clock
  log: Log
  inspect(path: string): Promise<PlatformContents>
}

/**
 * Copies of the database beside it, for when its file is damaged. They hold what the database holds, and need its
 * key; a server that is lost takes them along, which backups of the platform are for.
 */
export function createDailyCopies({ db, directory, clock, log, inspect }: DailyCopyOptions) {
  const stopping = new AbortController()
  let work: Promise<void> = Promise.resolve()

  async function copy(path: string): Promise<void> {
    const size_bytes = Number(db.raw.pragma('page_count', { simple: true })) * pageSize(db)
    if (freeForBackups(directory) <= size_bytes)
      return log.warn('The disk has no room for the daily copy of the database', { size_bytes })
    const partial = `${path}.partial`
    try {
      await copyDatabase(db, partial, stopping.signal)
      await inspect(partial)
      await rename(partial, path)
    } catch (error) {
      await removeAll(directory, UNFINISHED)
      if (!stopping.signal.aborted) throw error
    }
  }
  /** Makes the copy of this day, unless it is there, and removes what is older than the newest ones. */
  async function pass(): Promise<void> {
    if (db.raw.memory || stopping.signal.aborted) return
    const today = `${PREFIX}${clock.iso().slice(0, 10)}.db`
    const path = join(directory, today)
    if (existsSync(path)) return
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await removeAll(directory, UNFINISHED)
    await copy(path)
    const copies = (await readdir(directory)).filter((name) => NAME.test(name)).sort()
    // A day that is still to come was told by a clock that was wrong: a copy of it is older than that of today.
    const oldest_first = [...copies.filter((name) => name > today), ...copies.filter((name) => name <= today)]
    for (const name of oldest_first.slice(0, -KEPT)) await rm(join(directory, name), { force: true })
  }

  return {
    /** Throws what kept the copy from being made; nothing of it is left then. */
    run(): Promise<void> {
      work = pass()
      return work
    },
    /** Ends a copy that is under way: the database cannot be closed before. */
    async stop(): Promise<void> {
      stopping.abort()
      await work.catch(() => undefined)
    },
  }
}

const pageSize = (db: Db): number => Number(db.raw.pragma('page_size', { simple: true }))

async function removeAll(directory: string, names: RegExp): Promise<void> {
  for (const name of await readdir(directory))
    if (names.test(name)) await rm(join(directory, name), { force: true })
}
