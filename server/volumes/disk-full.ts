import { statSync } from 'node:fs'
import { freeForUsers } from '#server/kernel/disk-reserve'
import type { Engine } from '#server/platform/engine/engine'

const deviceOf = (directory: string): number | undefined => {
  try {
    return statSync(directory).dev
  } catch {
    return undefined
  }
}

/**
 * Tells whether nothing is left of the data disk but what is kept for Portreeve, where volumes lie on the same
 * disk: elsewhere it helps nobody that something which fills them is stopped.
 */
export function createDiskFull(engine: Pick<Engine, 'dataDirectory'>, data_directory: string) {
  let together: boolean | undefined
  return async (): Promise<boolean> => {
    if (freeForUsers(data_directory) > 0) return false
    together ??= deviceOf(await engine.dataDirectory()) === deviceOf(data_directory)
    return together
  }
}
