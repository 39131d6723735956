import { lstat, readlink } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

const MAX_LINKS = 40

/**
 * True when following the symbolic link at `path` (inside of `root`, and itself of real folders) can never
 * lead out of `root`, step by step as the kernel would walk. A link to something that is not there yet may
 * stay when all its steps are inside.
 */
export async function linkStaysInside(root: string, path: string): Promise<boolean> {
  let links = 0
  let here = dirname(path)
  let todo = [relative(here, path)]
  while (todo.length > 0) {
    const part = todo.shift()!
    if (part === '' || part === '.') continue
    if (part === '..') {
      here = dirname(here)
      if (here !== root && !here.startsWith(root + sep)) return false
      continue
    }
    const next = join(here, part)
    const stat = await lstat(next).catch(() => undefined)
    if (!stat?.isSymbolicLink()) {
      here = next
      continue
    }
    const target = await readlink(next)
    if (++links > MAX_LINKS || target.startsWith('/') || target.includes('\0')) return false
    todo = [...target.split('/'), ...todo]
  }
  return true
}
