import { mkdirSync, statfsSync } from 'node:fs'
import { ApiError } from './errors.ts'

/** Part of the disk that only Portreeve itself may fill, and the most that it is. */
const SHARE = 0.05
const MOST_BYTES = 1024 ** 3

/** Bytes that users may still put on the disk of a folder. */
export function freeForUsers(directory: string): number {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const { bsize, blocks, bavail } = statfsSync(directory)
  return bavail * bsize - Math.min(MOST_BYTES, blocks * bsize * SHARE)
}

/**
 * Throws DISK_FULL when so many bytes of a user would touch the reserve: the database, logs and certificates
 * are written as long as there is any of it.
 */
export function requireFree(directory: string, bytes = 0): void {
  if (freeForUsers(directory) > bytes) return
  throw new ApiError(
    'DISK_FULL',
    'The disk of the server has no room for this: what is left is kept for Portreeve itself. Free space, then try again; nothing was changed.',
  )
}
