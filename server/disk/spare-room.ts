import { setImmediate } from 'node:timers/promises'
import type { Db } from '#server/kernel/db'
import { freeBytes } from '#server/kernel/disk-reserve'

/** Free pages that the file of the database is meant to have. */
const ROOM_BYTES = 16 * 1024 ** 2
/** From here on they are made up. */
const LEAST_BYTES = (ROOM_BYTES / 4) * 3
/** More than SQLite writes into its log before it begins again at the start of it. */
const LOG_BYTES = 5 * 1024 ** 2
/** A disk writes it in a few milliseconds, for which everybody waits. */
const PIECE_BYTES = 512 * 1024

/**
 * Keeps room for what is written to the database where nobody else can take it: pages of its file,
 * and a log of its own size, which SQLite keeps as long as the database is open. An app may fill
 * the disk faster than it can be stopped, and to stop it, to log in and to delete something is
 * written down.
 */
export function createSpareRoom(db: Db, directory: string) {
  let has_log = false
  let work: Promise<void> = Promise.resolve()
  let is_stopped = false

  const numberOf = (pragma: string) => Number(db.raw.pragma(pragma, { simple: true }))
  const add = (): void => void db.sql('INSERT INTO spare_room (filler) VALUES (zeroblob(?))').run(PIECE_BYTES)
  const remove = (): boolean =>
    db.sql('DELETE FROM spare_room WHERE rowid = (SELECT max(rowid) FROM spare_room)').run().changes > 0

  /** SQLite would keep all that was written in its cache, for as long as it runs: fifteen megabytes more. */
  const forget = (): void => void db.raw.pragma('shrink_memory')

  /** Bytes to write now; what is free in the file already is filled first. */
  function missing(): number {
    const free_bytes = numberOf('freelist_count') * numberOf('page_size')
    const on_disk_bytes = freeBytes(directory)
    if (free_bytes < LEAST_BYTES && on_disk_bytes > 2 * ROOM_BYTES) return ROOM_BYTES
    // The log takes the disk even where nothing but the reserve is left: it is what the reserve is
    // for.
    return !has_log && free_bytes >= LOG_BYTES && on_disk_bytes > LOG_BYTES ? LOG_BYTES : 0
  }
  async function fill(bytes: number): Promise<void> {
    for (let added_bytes = 0; added_bytes < bytes && !is_stopped; added_bytes += PIECE_BYTES) {
      db.tx(add)
      forget()
      await setImmediate()
    }
    // Until then the last of the pages are in the log alone, and the file would have to grow for
    // them.
    if (!is_stopped) db.raw.pragma('wal_checkpoint(PASSIVE)')
    has_log = true
  }
  async function pass(): Promise<void> {
    if (db.raw.memory) return
    const bytes = missing()
    try {
      if (bytes > 0) await fill(bytes)
    } finally {
      // Row by row: a transaction that gives all pages back at once takes longer.
      while (!is_stopped && db.tx(remove)) {
        forget()
        await setImmediate()
      }
    }
  }

  return {
    /** Makes up for what was used of the room. */
    hold(): Promise<void> {
      work = work.catch(() => undefined).then(pass)
      return work
    },
    /** Ends what is under way: the database is closed next. */
    async stop(): Promise<void> {
      is_stopped = true
      await work.catch(() => undefined)
    },
  }
}
