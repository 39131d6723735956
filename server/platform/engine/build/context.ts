import { constants, type Stats } from 'node:fs'
import { lstat, open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../engine.ts'
import { createPace } from '#server/kernel/pace'
import { type IgnoreRules, parseIgnoreRules, type Verdict } from './ignore-patterns.ts'

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
const IGNORE_LIMIT = 256 * 1024
/** Each level of folders costs every file below it. */
const PATH_LIMIT = 1024

const refused = (message: string, hint: string) => new EngineError('build_failed', message, hint)

/** Text of the `.dockerignore`; none where there is no such file, or a link in its place. */
async function readIgnoreFile(context: string): Promise<string> {
  const file = await open(join(context, IGNORE_FILE), constants.O_RDONLY | constants.O_NOFOLLOW).catch(
    () => undefined,
  )
  if (!file) return ''
  try {
    const stats = await file.stat()
    if (!stats.isFile()) return ''
    if (stats.size > IGNORE_LIMIT) throw new RangeError(`The .dockerignore is larger than 256 KiB.`)
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}
/** Reads the `.dockerignore` of a context. Throws EngineError for one that would take too long to go by. */
export async function readRules(context: string): Promise<IgnoreRules> {
  try {
    return parseIgnoreRules(await readIgnoreFile(context))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw refused(error.message, 'Name whole folders in it instead of many files.')
  }
}

/**
 * Walks a build context in the order in which it is sent: names of a folder sorted by their bytes, a folder
 * before what is in it.
 * `.git` is never sent, at any depth; links are never followed; what `.dockerignore` leaves out is left out.
 */
export async function* walkContext(context: string): AsyncGenerator<ContextEntry> {
  const rules = await readRules(context)
  const pace = createPace('contexts')
  let count = 0

  /** `folders` are excluded parents that are sent only if something in them is. */
  async function* walk(
    folder: string,
    folders: ContextEntry[],
    parent?: Verdict,
  ): AsyncGenerator<ContextEntry> {
    const names = (await readdir(join(context, folder), { encoding: 'buffer' }))
      .sort(Buffer.compare)
      .map((name) => name.toString('utf8'))
    for (const name of names) {
      if (name === '.git') continue
      if (++count > ENTRY_LIMIT)
        throw refused(
          `The build context has more than ${ENTRY_LIMIT} files.`,
          'Leave folders out of it with a .dockerignore.',
        )
      const path = folder === '' ? name : `${folder}/${name}`
      if (path.length > PATH_LIMIT)
        throw refused(
          `The build context has a path of more than ${PATH_LIMIT} characters: ${path.slice(0, 60)}…`,
          'Leave its folder out with a .dockerignore, or remove it.',
        )
      const entry = await describe(context, path)
      if (!entry) continue
      const verdict = await rules.judgeInPieces(pace, path, parent)
      const { excluded } = verdict
      if (excluded && !(entry.kind === 'folder' && rules.has_exceptions)) continue
      if (excluded) folders.push(entry)
      else {
        yield* folders.splice(0)
        yield entry
      }
      if (entry.kind === 'folder') {
        yield* walk(path, folders, verdict)
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
