import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { ApiError } from './errors.ts'
import { withinRoom } from './watched-room.ts'

/** Part of the disk that only Portreeve itself may fill, and the most that it is. */
const SHARE = 0.05
const MOST_BYTES = 1024 ** 3

const reserveOf = (disk_bytes: number): number => Math.min(MOST_BYTES, disk_bytes * SHARE)

/** Bytes that are free on the disk of a folder beside so many reserves. */
function freeBeside(reserves: number, directory: string): number {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const { bsize, blocks, bavail } = statfsSync(directory)
  return bavail * bsize - reserves * reserveOf(bsize * blocks)
}

/** Bytes that are free on the disk of a folder, reserves included. */
export const freeBytes = (directory: string): number => freeBeside(0, directory)

/** Bytes that users may still put on the disk of a folder. */
export const freeForUsers = (directory: string): number => freeBeside(1, directory)

/**
 * Bytes that backups may still put there. They stop a whole reserve before that is touched: else
 * whoever makes backups could fill the disk until apps of others, which had written most since, are
 * stopped for it.
 */
export const freeForBackups = (directory: string): number => freeBeside(2, directory)

/**
 * The same for data that are filled beside what serves, on the disk of an engine; undefined for a
 * folder that is not here.
 */
export function freeForCopies(directory: string): number | undefined {
  return existsSync(directory) ? freeForBackups(directory) : undefined
}

/** The same of files: a disk whose table of files is full takes no file of anybody. */
const MOST_FILES = 50_000

/** Whether users have nothing left on the disk of a folder, neither bytes nor files; a folder that is not here is on no disk of ours. */
export function isReserveTouched(directory: string): boolean {
  try {
    const { bsize, blocks, bavail, files, ffree } = statfsSync(directory)
    return (
      bavail * bsize <= reserveOf(bsize * blocks) ||
      (files > 0 && ffree <= Math.min(MOST_FILES, files * SHARE))
    )
  } catch {
    return false
  }
}

/**
 * Throws DISK_FULL when so many bytes of a user would touch the reserve: the database, logs and
 * certificates are written as long as there is any of it.
 */
export function requireFree(directory: string, bytes = 0): void {
  if (freeForUsers(directory) <= bytes) throw diskFull()
}

const diskFull = () =>
  new ApiError(
    'DISK_FULL',
    'The disk of the server has no room for this: what is left is kept for Portreeve itself. Free space, then try again; nothing was changed.',
  )

/**
 * Runs work of a user that nobody knows the size of, and ends it with DISK_FULL once nothing but
 * the reserve is left on the disk of one of these folders.
 */
export function sparingReserve<T>(
  signal: AbortSignal,
  directories: readonly string[],
  work: (signal: AbortSignal) => Promise<T>,
  isTouched: (directory: string) => boolean = isReserveTouched,
): Promise<T> {
  return withinRoom(signal, { isFull: () => directories.some(isTouched), filled: diskFull }, work)
}
