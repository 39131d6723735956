import { createReadStream } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Db } from '#server/kernel/db'
import { readKeyFiles } from '#server/kernel/secrets'
import type { Dump } from '../target.ts'
import type { BackupTarget } from '../target.ts'
import { copyDatabase } from '../copy-database.ts'
import { PLATFORM_PROJECT } from '../repository.ts'
import { inspectApart } from './inspect-apart.ts'
import { unpackPlatform } from './platform-archive.ts'

export interface PlatformTargetOptions {
  db: Db
  /** Folder for the copy on its way. */
  work_directory: string
  /** The key file; missing where the key comes from the environment. */
  key_file: string
  version: string
}

/** The installation itself: its database, in which certificates are too, and the key that opens its secrets. */
export function createPlatformTarget(options: PlatformTargetOptions): BackupTarget {
  const folderOf = (id: string) => join(options.work_directory, 'platform', id)
  async function* pack(
    folder: string,
    keys: readonly (readonly [name: string, content: Buffer])[],
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { pack: createPack } = await import('tar-stream')
    const tar = createPack()
    const fill = async () => {
      const file = join(folder, 'portreeve.db')
      const { size } = await stat(file)
      const entry = tar.entry({ name: 'portreeve.db', size, mode: 0o600 })
      await pipeline(createReadStream(file), entry as unknown as Writable, { signal })
      for (const [name, content] of keys) tar.entry({ name, mode: 0o600 }, content)
      tar.finalize()
    }
    const filled = fill().catch((error: Error) => tar.destroy(error))
    try {
      yield* tar as unknown as Readable
      await filled
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  return {
    kind: 'platform',
    extension: () => 'tar',
    find: () => ({
      id: null,
      name: 'Portreeve',
      project_id: PLATFORM_PROJECT,
      engine: 'portreeve',
      version: options.version,
      apps: [],
    }),
    requireReadable: () => {},
    async dump(_id, { work_id }, signal): Promise<Dump> {
      const folder = folderOf(work_id)
      // What a process left there that was killed meanwhile: a whole copy of the database.
      await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { recursive: true, mode: 0o700 })
      // Before the copy: a rotation that ends later has sealed nothing with a key that is not among these.
      const keys = readKeyFiles(options.key_file)
      try {
        await copyDatabase(options.db, join(folder, 'portreeve.db'), signal)
      } catch (error) {
        await rm(folder, { recursive: true, force: true })
        throw error
      }
      return { bytes: pack(folder, keys, signal), extension: 'tar' }
    },
    tidy: (work_id) => rm(folderOf(work_id), { recursive: true, force: true }),
    /** Opens the database of the archive and reads all of it. */
    async verify({ id }, open) {
      const folder = folderOf(`verify-${id}`)
      await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { recursive: true, mode: 0o700 })
      try {
        await unpackPlatform(open(), folder)
        return await inspectApart(join(folder, 'portreeve.db'))
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
  }
}
