import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What a file is to hold; in pieces, each made when its turn comes, where it may be of many megabytes. */
export type FileText = string | Iterable<string>

/** The edge's folder: text files, each written whole or not at all. */
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
  const file = await open(`${path}${IN_PROGRESS}`, 'w', 0o600)
  try {
    for (const piece of typeof text === 'string' ? [text] : text) await file.writeFile(piece)
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(`${path}${IN_PROGRESS}`, path)
  const folder = await open(dirname(path), 'r')
  await folder.sync().finally(() => folder.close())
}
