import { chmod, mkdir, open, readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * What a file is to hold; in pieces, each made when its turn comes, where it may be of many megabytes.
 * Pieces that can be made twice may be written on a full disk.
 */
export type FileText = string | Iterable<string>

/** The edge's folder: text files, each written whole or not at all while the disk has room. */
export interface EdgeFiles {
  /** Every file of the edge's configuration, by its path in the folder. */
  readAll(): Promise<Map<string, string>>
  /** Puts files in place one by one; each survives a power cut right after. Others are served between pieces. */
  write(files: ReadonlyMap<string, FileText>): Promise<void>
  remove(paths: Iterable<string>): Promise<void>
  read(path: string): Promise<string>
}

const FOLDERS = ['config', 'maps', 'pages', 'program', 'certificates']
const IN_PROGRESS = '.writing'
/** What `stat` counts in. */
const BLOCK_BYTES = 512

/** What the edge's workers, who are somebody else, may reach by its name: the socket that they wake apps by. */
export const WAKE_FOLDER = 'wake'
const PASSABLE = new Set(['', WAKE_FOLDER])

/**
 * Opens the folder; only Portreeve's own user can look inside. The data directory around it is closed to
 * everybody else, so that nobody but the edge can pass through.
 */
export async function openEdgeFiles(directory: string): Promise<EdgeFiles> {
  for (const folder of ['', ...FOLDERS, 'run', 'candidate', WAKE_FOLDER]) {
    await mkdir(join(directory, folder), { recursive: true, mode: 0o700 })
    await chmod(join(directory, folder), PASSABLE.has(folder) ? 0o711 : 0o700)
  }
  return {
    async readAll() {
      const files = new Map<string, string>()
      for (const folder of FOLDERS) {
        for (const name of await readdir(join(directory, folder))) {
          if (name.endsWith(IN_PROGRESS)) await rm(join(directory, folder, name), { force: true })
          else files.set(`${folder}/${name}`, await readFile(join(directory, folder, name), 'utf8'))
        }
      }
      return files
    },
    read: (path) => readFile(join(directory, path), 'utf8'),
    async write(files) {
      await Promise.all([...files].map(([path, text]) => replaceFile(join(directory, path), text)))
    },
    async remove(paths) {
      for (const path of paths) await rm(join(directory, path), { force: true })
    },
  }
}

async function replaceFile(path: string, text: FileText): Promise<void> {
  const partial = `${path}${IN_PROGRESS}`
  try {
    await writeFile(partial, text, 'w')
  } catch (error) {
    await rm(partial, { force: true })
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    return overwrite(path, text, error)
  }
  await rename(partial, path)
  const folder = await open(dirname(path), 'r')
  await folder.sync().finally(() => folder.close())
}

/**
 * Writes into the blocks that a file has: what is to be taken off the edge of a full disk, such as the
 * app that filled it, needs no more than what was there. The rows tell all of it once more at a start
 * that finds it half written.
 */
async function overwrite(path: string, text: FileText, full: unknown): Promise<void> {
  const pieces = typeof text === 'string' ? [text] : text
  const is_spent = (pieces as { next?: unknown }).next !== undefined
  const found = await stat(path).catch(() => undefined)
  if (!found || is_spent) throw full
  let size = 0
  for (const piece of pieces) size += Buffer.byteLength(piece)
  if (size > found.blocks * BLOCK_BYTES) throw full
  await writeFile(path, text, 'r+')
  await truncate(path, size)
}

async function writeFile(path: string, text: FileText, flags: 'w' | 'r+'): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    for (const piece of typeof text === 'string' ? [text] : text) await file.writeFile(piece)
    await file.datasync()
  } finally {
    await file.close()
  }
}
