import { realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'

/** The folder that an app's configuration names is not in its source. */
export class BaseDirectoryError extends Error {
  readonly hint = 'Change base_directory to a folder of the repository or archive, or to . for its root.'
  constructor(base_directory: string, reason: string) {
    super(`The base directory ${base_directory.slice(0, 200)} ${reason}`)
    this.name = 'BaseDirectoryError'
  }
}

/**
 * The real folder of an app in its source. A link of the source may stand for another folder of it, and leads
 * nowhere else on this machine.
 */
export function sourceFolder(source: string, base_directory: string): string {
  const root = realpathSync.native(source)
  let folder: string
  try {
    folder = realpathSync.native(join(root, base_directory))
  } catch {
    throw new BaseDirectoryError(base_directory, 'is not in the source.')
  }
  if (folder !== root && !folder.startsWith(root + sep))
    throw new BaseDirectoryError(base_directory, 'leads out of the source.')
  if (!statSync(folder).isDirectory()) throw new BaseDirectoryError(base_directory, 'is not a folder.')
  return folder
}
