import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const KERNEL = '/proc/sys/fs/inotify'
/** Counted by user, and programs of all containers and of this machine run as the same one. */
const COUNTS = ['max_user_instances', 'max_user_watches']
/** The kernel charges each to the memory of its container: with so many, that is what ends first. */
const ENOUGH = 2 ** 24

/**
 * Raises what the kernel allows one user of watches on files. With the 128 instances that it allows by itself one
 * container took them all, and no program of others or of this machine could watch a file any more. Throws where
 * the kernel does not let it be raised.
 */
export function raiseWatchLimits(folder = KERNEL): void {
  for (const name of COUNTS) {
    const path = join(folder, name)
    if (Number(readFileSync(path, 'utf8')) < ENOUGH) writeFileSync(path, String(ENOUGH))
  }
}
