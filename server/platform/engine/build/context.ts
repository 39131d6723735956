import { constants, type Stats } from 'node:fs'
import { lstat, open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type IgnoreRules, parseIgnoreRules } from './ignore-patterns.ts'

/** One thing of a build context that is sent. Devices, sockets and pipes never are. */
export interface ContextEntry {
  /** Relative, with `/`. */
  path: string
  kind: 'file' | 'folder' | 'link'
  /** Permission bits with setuid, setgid and sticky. */
  mode: number
  size: number
  modified_ms: number
  /** Target of a link, sent as it is and never followed. */
  target?: string
}

const IGNORE_FILE = '.dockerignore'
/** A hostile repository must not keep a walk busy for ever. */
const ENTRY_LIMIT = 1_000_000

async function readRules(context: string): Promise<IgnoreRules> {
  try {
    const file = await open(join(context, IGNORE_FILE), constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      return parseIgnoreRules(await file.readFile('utf8'))
    } finally {
      await file.close()
    }
  } catch {
    return parseIgnoreRules('')
  }
}

/**
 * Walks a build context in the order in which it is sent: names of a folder sorted by their bytes, a folder
 * before what is in it.
 * `.git` is never sent, at any depth; links are never followed; what `.dockerignore` leaves out is left out.
 */
export async function* walkContext(context: string): AsyncGenerator<ContextEntry> {
  const rules = await readRules(context)
  let count = 0

  /** `folders` are excluded parents that are sent only if something in them is. */
  async function* walk(folder: string, folders: ContextEntry[]): AsyncGenerator<ContextEntry> {
    const names = (await readdir(join(context, folder), { encoding: 'buffer' }))
      .sort(Buffer.compare)
      .map((name) => name.toString('utf8'))
    for (const name of names) {
      if (name === '.git') continue
      if (++count > ENTRY_LIMIT) throw new Error(`The build context has more than ${ENTRY_LIMIT} files.`)
      const path = folder === '' ? name : `${folder}/${name}`
      const entry = await describe(context, path)
      if (!entry) continue
      const excluded = rules.excludes(path)
      if (excluded && !(entry.kind === 'folder' && rules.has_exceptions)) continue
      if (excluded) folders.push(entry)
      else {
        yield* folders.splice(0)
        yield entry
      }
      if (entry.kind === 'folder') {
        yield* walk(path, folders)
        if (excluded && folders.at(-1) === entry) folders.pop()
      }
    }
  }
  yield* walk('', [])
}

function kindOf(stats: Stats): ContextEntry['kind'] | undefined {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'folder'
  return stats.isSymbolicLink() ? 'link' : undefined
}

async function describe(context: string, path: string): Promise<ContextEntry | undefined> {
  const full = join(context, path)
  const stats = await lstat(full).catch(() => undefined)
  if (!stats) return undefined
  const kind = kindOf(stats)
  if (!kind) return undefined
  return {
    path,
    kind,
    mode: stats.mode & 0o7777,
    size: kind === 'file' ? stats.size : 0,
    modified_ms: stats.mtimeMs,
    ...(kind === 'link' ? { target: await readlink(full) } : {}),
  }
}

/** Opens a file of the context for reading; a link that took its place since the walk is refused. */
export async function openContextFile(context: string, path: string) {
  return open(join(context, path), constants.O_RDONLY | constants.O_NOFOLLOW)
}

/** Whether the folder of a build context is there at all. */
export async function isFolder(path: string): Promise<boolean> {
  const stats: Stats | undefined = await lstat(path).catch(() => undefined)
  return stats?.isDirectory() ?? false
}
