import { statfsSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readDisk } from '#server/platform/host/reading'

export interface FoundFile {
  path: string
  bytes: number
  changed_ms: number
}

/** Every file below a folder, without following links; what vanishes meanwhile is left out. */
export async function* filesBelow(folder: string): AsyncGenerator<FoundFile> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (entry.isFile()) {
      const found = await stat(path).catch(() => undefined)
      if (found) yield { path, bytes: found.blocks * 512, changed_ms: found.mtimeMs }
    }
  }
}

export async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0
  for await (const file of filesBelow(folder)) bytes += file.bytes
  return bytes
}

export const bytesOf = async (...paths: string[]): Promise<number> => {
  let bytes = 0
  for (const path of paths) bytes += ((await stat(path).catch(() => undefined))?.blocks ?? 0) * 512
  return bytes
}

export const removeFile = (path: string): Promise<void> => rm(path, { force: true })

/** The disk that a folder is on; undefined for a folder of another machine. */
export function diskOf(
  folder: string,
): { device: string; total_bytes: number; free_bytes: number } | undefined {
  try {
    const found = statfsSync(folder)
    const { disk_used_bytes, disk_total_bytes } = readDisk(found)
    return {
      device: `${found.type}-${found.blocks}-${found.files}`,
      total_bytes: disk_total_bytes,
      free_bytes: disk_total_bytes - disk_used_bytes,
    }
  } catch {
    return undefined
  }
}
