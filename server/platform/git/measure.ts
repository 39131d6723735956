import { pathTooLong, tooLarge, tooManyFiles } from './errors.ts'
import type { GitLimits, GitSession } from './session.ts'

/** As long as a path may be that still has a place below a folder of this machine, and of a build. */
const MAX_PATH_BYTES = 2048

export interface Measured {
  files: number
  size_bytes: number
  submodules: number
}

/**
 * Counts the files and folders of a commit and their sizes before one of them is written: a small pack can hold
 * a tree of billions.
 */
export async function measure(session: GitSession, revision: string, limits: GitLimits): Promise<Measured> {
  const found = { files: 0, size_bytes: 0, submodules: 0 }
  let folders = 0
  let names_bytes = 0
  const format = '--format=%(objectmode) %(objectsize) %(path)'
  await session.git(['ls-tree', '-r', '-t', '--full-tree', format, revision], {
    max_output_bytes: 64 * 1024,
    onLine(line) {
      const [, mode, size, path = ''] = /^(\d+) (\S+) (.*)$/.exec(line) ?? []
      const path_bytes = Buffer.byteLength(path)
      names_bytes += path_bytes
      if (path_bytes > MAX_PATH_BYTES) throw pathTooLong('a path', MAX_PATH_BYTES)
      if (names_bytes > limits.max_names_bytes) throw pathTooLong('paths', limits.max_names_bytes)
      if (mode === '160000') found.submodules += 1
      else if (mode === '040000') folders += 1
      else found.files += 1
      found.size_bytes += Number(size) || 0
      if (found.files + folders > limits.max_files) throw tooManyFiles(limits.max_files)
      if (found.size_bytes > limits.max_bytes) throw tooLarge(limits.max_bytes)
    },
  })
  return found
}
