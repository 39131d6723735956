import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, realpath, rm, rmdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { removeTree } from '#server/kernel/removal'

/** User that git runs as. */
export interface Identity {
  uid: number
  gid: number
}

/** True when another user may pass through every folder above, so that git can run as one. */
async function isReachable(directory: string): Promise<boolean> {
  for (let path = directory; path !== dirname(path); path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false
  }
  return true
}

/**
 * Removes the folder of a session. What git wrote for a stranger may have more files than this process should
 * remove itself, and paths that are longer than it could name.
 */
export async function removeSession(directory: string): Promise<void> {
  const repository = join(directory, 'repository')
  await rmdir(repository).catch(() => removeTree(repository))
  await rm(directory, { recursive: true, force: true, maxRetries: 3 })
}

/**
 * Removes what a crash left: sessions end with their run, so whatever is there at the start belongs to none. Among
 * temporary files another user may have made a folder of such a name, and could put a link in the place of one that is
 * being emptied: it is left.
 */
async function removeSessions(prefix: string, identity: Identity | undefined): Promise<void> {
  const owners = [process.getuid?.(), identity?.uid]
  for (const name of await readdir(dirname(prefix))) {
    if (!name.startsWith(basename(prefix))) continue
    const path = join(dirname(prefix), name)
    const found = await lstat(path).catch(() => undefined)
    if (found && owners.includes(found.uid)) await removeSession(path)
  }
}

/**
 * Prepares the place for sessions and returns the path that their folders start with. Git as an unprivileged
 * user cannot work below a private folder; then sessions are made among the system's temporary files, under a
 * name that this installation finds again.
 */
export async function prepareSessions(
  work_directory: string,
  identity: Identity | undefined,
): Promise<string> {
  await mkdir(work_directory, { recursive: true, mode: 0o711 })
  const directory = await realpath(work_directory)
  const own = join(directory, 'session-')
  await removeSessions(own, identity)
  if (!identity || (await isReachable(directory))) return own
  const parent = await stat('/var/tmp').then(
    () => '/var/tmp',
    () => tmpdir(),
  )
  const prefix = join(
    parent,
    `portreeve-git-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}-`,
  )
  await removeSessions(prefix, identity)
  return prefix
}
