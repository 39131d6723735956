import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join, posix, sep } from 'node:path'
import type { SourceTree } from './plan.ts'

/**
 * Files beyond this number are not seen; the walk is breadth-first, so what lies deep in a huge folder is
 * what is missed.
 */
const MAX_FILES = 20_000
const MAX_FOLDERS = 20_000
const MAX_DEPTH = 32
/** Each is followed over as many folders as its author liked. */
const MAX_LINKS = 1000
const MAX_TEXT_BYTES = 1024 * 1024

/** Folders that hold installed packages or caches: never source, and often larger than the source. */
const SKIPPED_FOLDERS = new Set([
  '.git',
  '.hg',
  '.svn',
  'node_modules',
  'bower_components',
  '.venv',
  '__pycache__',
  '.tox',
  '.gradle',
  '.terraform',
  '.next',
  '.nuxt',
  '.svelte-kit',
  '.turbo',
  '.cache',
  '.pnpm-store',
  '.bundle',
  '.mypy_cache',
  '.pytest_cache',
])

/**
 * Looks at a real folder, of which a stranger decides how long that takes: nobody waits for it. Links are followed
 * only to files inside the folder; devices, pipes and sockets do not exist for it.
 */
export async function openTree(directory: string): Promise<SourceTree> {
  const root = await realpath(directory)
  const { files, links } = await listFiles(root)
  return createTree(files, (path) => readText(links.get(path) ?? join(root, path)))
}

/** A tree made of texts, for callers that have no folder. */
export function memoryTree(contents: Readonly<Record<string, string>>): SourceTree {
  const files = new Map(Object.entries(contents))
  return createTree([...files.keys()].sort(), (path) => files.get(path))
}

function createTree(files: readonly string[], load: (path: string) => string | undefined): SourceTree {
  const known = new Set(files)
  const texts = new Map<string, string | undefined>()
  const read = (path: string): string | undefined => {
    if (!known.has(path)) return undefined
    if (!texts.has(path)) texts.set(path, load(path))
    return texts.get(path)
  }
  return {
    files: () => files,
    has: (path) => known.has(path),
    read,
    sub(folder) {
      const prefix = folderPrefix(folder)
      if (prefix === undefined) return createTree([], () => undefined)
      if (prefix === '') return this
      const inside = files.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length))
      return createTree(inside, (path) => read(prefix + path))
    },
  }
}

/**
 * `apps/web/` for `./apps//web`, the empty string for the root, undefined for a path that leaves the folder.
 */
function folderPrefix(folder: string): string | undefined {
  const path = posix
    .normalize(folder.replaceAll('\\', '/') || '.')
    .replace(/^(\.\/)+/, '')
    .replace(/\/+$/, '')
  if (path === '' || path === '.') return ''
  if (path === '..' || path.startsWith('../') || path.startsWith('/') || path.includes('\0')) return undefined
  return `${path}/`
}

/** Paths of all files; of links that lead to one with its real path. */
async function listFiles(root: string): Promise<{ files: string[]; links: ReadonlyMap<string, string> }> {
  const found: string[] = []
  const links = new Map<string, string>()
  const all = () => ({ files: found.slice(0, MAX_FILES).sort(), links })
  let level = ['']
  let folders = 0
  let followed = 0
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      if (++folders > MAX_FOLDERS || found.length >= MAX_FILES) return all()
      for (const entry of await entriesOf(join(root, folder))) {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isFile()) found.push(path)
        else if (entry.isDirectory()) {
          if (!SKIPPED_FOLDERS.has(entry.name)) next.push(path)
        } else if (entry.isSymbolicLink() && ++followed <= MAX_LINKS) {
          const real = await linkedFile(root, path)
          if (real === undefined) continue
          links.set(path, real)
          found.push(path)
        }
      }
    }
    level = next
  }
  return all()
}

// A folder that cannot be opened is as good as an empty one: detection only looks.
const entriesOf = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => [])

/** The real path behind a link, when it is a file inside the folder. */
async function linkedFile(root: string, path: string): Promise<string | undefined> {
  try {
    const real = await realpath(join(root, path))
    return real.startsWith(root + sep) && (await stat(real)).isFile() ? real : undefined
  } catch {
    return undefined
  }
}

function readText(path: string): string | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const { size } = fstatSync(file)
      if (size > MAX_TEXT_BYTES) return undefined
      const bytes = Buffer.alloc(size)
      return decode(bytes.subarray(0, readSync(file, bytes, 0, size, 0)))
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

/** UTF-8 with or without a mark, or UTF-16 with one, which Windows shells write into `requirements.txt`. */
function decode(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  if (bytes.includes(0)) return undefined
  return new TextDecoder('utf-8').decode(bytes)
}
