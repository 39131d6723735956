import { chmod, lchown, lstat, readdir, unlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { linkStaysInside } from '#server/platform/archive/inside'
import { quote } from './errors.ts'

/** What a checkout holds. */
export interface Swept {
  size_bytes: number
  /** Its files of attributes; no more than anybody has. */
  attributes: string[]
}

const ATTRIBUTES = '.gitattributes'
const MOST_ATTRIBUTES = 1000

/**
 * Says what the files of a checkout are, and makes it safe and equal for everyone who reads it later: it belongs to
 * the server again, has plain modes whatever the umask was, and no link leads out of it. Links are looked at only
 * after git has ended, so that nothing can change in between.
 */
export async function sweep(
  root: string,
  owner: { uid: number; gid: number } | undefined,
  onLog: (line: string) => void,
  signal: AbortSignal,
): Promise<Swept> {
  const swept: Swept = { size_bytes: 0, attributes: [] }
  const visit = async (directory: string): Promise<void> => {
    if (owner) await lchown(directory, owner.uid, owner.gid)
    await chmod(directory, 0o755)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      signal.throwIfAborted()
      const path = join(directory, entry.name)
      if (entry.isDirectory()) await visit(path)
      else if (entry.isSymbolicLink()) await visitLink(path)
      else if (entry.isFile()) await visitFile(path, entry.name)
      else await unlink(path)
    }
  }
  const visitFile = async (path: string, name: string): Promise<void> => {
    if (name === ATTRIBUTES && swept.attributes.length < MOST_ATTRIBUTES) swept.attributes.push(path)
    const { mode, size } = await lstat(path)
    swept.size_bytes += size
    if (owner) await lchown(path, owner.uid, owner.gid)
    const desired = mode & 0o100 ? 0o755 : 0o644
    if ((mode & 0o7777) !== desired) await chmod(path, desired)
  }
  const visitLink = async (path: string): Promise<void> => {
    if (owner) await lchown(path, owner.uid, owner.gid)
    if (await linkStaysInside(root, path)) return
    await unlink(path)
    onLog(`Left out the link ${quote(relative(root, path))}, because it leads out of the repository.`)
  }
  await visit(root)
  return swept
}
