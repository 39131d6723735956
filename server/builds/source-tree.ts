import { closeSync, fstatSync, openSync, readdirSync, readSync, realpathSync, statSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import type { SourceTree } from './plan.ts'

/**
 * Files beyond this number are not seen; the walk is breadth-first, so what lies deep in a huge folder is
 * what is missed.
 */
const MAX_FILES = 20_000
const MAX_FOLDERS = 20_000
const MAX_DEPTH = 32
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
 * Looks at a real folder. Links are followed only to files inside the folder; devices, pipes and sockets do
 * not exist for it.
 */
export function openTree(directory: string): SourceTree {
  const root = realpathSync(directory)
  const files = listFiles(root)
  return createTree(files, (path) => readText(root, path))
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

function listFiles(root: string): string[] {
  const found: string[] = []
  let level = ['']
  let folders = 0
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      if (++folders > MAX_FOLDERS || found.length >= MAX_FILES) return found.slice(0, MAX_FILES).sort()
      for (const entry of entriesOf(join(root, folder))) {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isFile()) found.push(path)
        else if (entry.isDirectory()) {
          if (!SKIPPED_FOLDERS.has(entry.name)) next.push(path)
        } else if (entry.isSymbolicLink() && linkedFile(root, path) !== undefined) found.push(path)
      }
    }
    level = next
  }
  return found.slice(0, MAX_FILES).sort()
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // A folder that cannot be opened is as good as an empty one: detection only looks.
  }
}

/** The real path behind a link, when it is a file inside the folder. */
function linkedFile(root: string, path: string): string | undefined {
  try {
    const real = realpathSync(join(root, path))
    if (!real.startsWith(root + sep)) return undefined
    return statSync(real).isFile() ? real : undefined
  } catch {
    return undefined
  }
}

function readText(root: string, path: string): string | undefined {
  const real = linkedFile(root, path)
  if (real === undefined) return undefined
  try {
    const file = openSync(real, 'r')
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
