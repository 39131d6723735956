import { existsSync, rmSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes, freeForUsers } from './disk-reserve.ts'

/** Several times what SQLite needs beside a database when it opens it. */
const SIZE_BYTES = 8 * 1024 ** 2
/** With less than this a start may fail. */
const ENOUGH_BYTES = SIZE_BYTES / 2
export const SPARE_FILE = 'spare'

/**
 * Writes the file that a start on a full disk gives up, unless it is there or users could put
 * nothing of this size on the disk either.
 */
export async function holdSpareFile(directory: string): Promise<void> {
  const path = join(directory, SPARE_FILE)
  if (existsSync(path) || freeForUsers(directory) <= SIZE_BYTES) return
  const partial = `${path}.partial`
  try {
    await writeFile(partial, Buffer.alloc(SIZE_BYTES), { mode: 0o600, flush: true })
    await rename(partial, path)
  } finally {
    await rm(partial, { force: true })
  }
}

/** Gives the file up where the disk is full. Tells whether it did. */
export function giveUpSpareFile(directory: string): boolean {
  const path = join(directory, SPARE_FILE)
  if (!existsSync(path)) return false
  if (freeBytes(directory) >= ENOUGH_BYTES) return false
  rmSync(path)
  return true
}
