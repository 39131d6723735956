import { createReadStream, lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack, type Pack } from 'tar-stream'

const EXECUTABLE = 0o111

/** Adds one file or link. Owners and times stay behind: what is built depends on the content alone. */
async function add(archive: Pack, root: string, name: string): Promise<void> {
  const path = join(root, name)
  const found = lstatSync(path)
  const common = { name, mtime: new Date(0), mode: found.mode & EXECUTABLE ? 0o755 : 0o644 }
  if (found.isSymbolicLink()) {
    archive.entry({ ...common, type: 'symlink', linkname: readlinkSync(path) })
    return
  }
  const entry = archive.entry({ ...common, type: 'file', size: found.size })
  await pipeline(createReadStream(path, { end: Math.max(0, found.size - 1) }), entry)
}

/** A gzipped tar of these files as a stream, made while it is read. */
export function sourceArchive(root: string, files: readonly string[]): Readable {
  const archive = pack()
  const zipped = createGzip()
  pipeline(archive, zipped).catch((error: Error) => zipped.destroy(error))
  const fill = async () => {
    for (const name of files) await add(archive, root, name)
    archive.finalize()
  }
  fill().catch((error: Error) => archive.destroy(error))
  return zipped
}
