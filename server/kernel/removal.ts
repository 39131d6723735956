import { randomBytes } from 'node:crypto'
import { renameSync } from 'node:fs'
import { opendir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from './process.ts'

/** Begins the names of what is being removed; nothing that is in use has such a name. */
export const REMOVED_PREFIX = '.removed-'
const TIMEOUT_MS = 3_600_000
/** Entries that are taken away here: more of them cost this process more than to start a program. */
const FEW = 32

/**
 * Removes a folder of any size: it is out of the way when this returns, and gone when the answer comes. A
 * program of the system takes more than a few files away, since a hundred thousand of them would stop this
 * process for seconds. Never rejects: what could not be removed keeps its new name, and is tried again later.
 */
export async function removeTree(path: string): Promise<void> {
  const away = join(dirname(path), `${REMOVED_PREFIX}${randomBytes(8).toString('hex')}`)
  try {
    renameSync(path, away)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') await removeAway(path)
    return
  }
  await removeAway(away)
}

/** Whether a folder holds a few entries only. Symbolic links are entries, and nobody follows them. */
async function holdsFew(top: string): Promise<boolean> {
  let entries = 0
  const folders = [top]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
    for await (const entry of await opendir(folder)) {
      entries += 1
      if (entries > FEW) return false
      if (entry.isDirectory()) folders.push(join(folder, entry.name))
    }
  return true
}

/** Removes what is out of the way already, such as what a process left that was killed meanwhile. */
export async function removeAway(path: string): Promise<void> {
  try {
    if (await holdsFew(path)) return await rm(path, { recursive: true, force: true })
  } catch {
    // No folder, or one with names that are no text: the program tells, and takes away what is there.
  }
  const done = await run(['rm', '-rf', '--', path], { cwd: '/', timeout_ms: TIMEOUT_MS }).catch(
    () => undefined,
  )
  if (done?.exit_code !== 0) await rm(path, { recursive: true, force: true }).catch(() => undefined)
}
