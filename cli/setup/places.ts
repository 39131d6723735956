import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Places } from './service.ts'

export interface PlaceOptions {
  dataDir: string
  /** Folder of the command that people type. */
  binDir: string
}

/**
 * Where what belongs to an installation lies. The data are closed to other users, who call the program as a
 * client: it has a folder of its own, beside that of the command.
 */
export function placesOf({ dataDir, binDir }: PlaceOptions): Places {
  const data = resolve(dataDir)
  const folder = join(resolve(binDir), '../lib/portreeve')
  return { data, ...inFolder(existsSync(earlier(data)) ? join(data, 'program') : folder, data) }
}

/** An installation from before stays as it is: its unit may write to this folder only. */
const earlier = (data: string) => join(data, 'program/portreeve')

export const inFolder = (folder: string, data: string): Omit<Places, 'data'> => ({
  program: join(folder, 'portreeve'),
  data_link: join(folder, 'data'),
  settings: join(data, 'portreeve.env'),
  cache: join(folder, 'unpacked'),
})
