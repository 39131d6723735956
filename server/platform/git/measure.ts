import { badName, pathTooLong, tooLarge, tooManyFiles } from './errors.ts'
import type { GitLimits, GitSession } from './session.ts'

/** As long as a path may be that still has a place below a folder of this machine, and of a build. */
const MAX_PATH_BYTES = 2048
/** As long as one name may be. */
const MAX_NAME_BYTES = 255

/**
 * Why a path cannot be that of a file here; undefined for a good one. What is no UTF-8 reaches us
 * with other characters in its place: we could neither look at such a file nor make it safe.
 */
function faultOf(path: string): string | undefined {
  if (path.includes('\ufffd')) return 'is not UTF-8'
  // Git puts a name with quotes or control characters into quotes, which makes it longer than it
  // is.
  if (path.startsWith('"')) return undefined
  const is_long = path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)
  return is_long ? `is longer than ${MAX_NAME_BYTES} bytes` : undefined
}

export interface Measured {
  files: number
  size_bytes: number
  submodules: number
}

/**
 * Counts the files and folders of a commit and their sizes before one of them is written: a small
 * pack can hold a tree of billions.
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
      const fault = faultOf(path)
      if (fault) throw badName(path, fault)
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
