import { createReadStream } from 'node:fs'
import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import * as v from 'valibot'
import { freeForBackups } from '#server/kernel/disk-reserve'
import {
  checkKey,
  missing,
  type ObjectStore,
  type ObjectStoreDescriptor,
  ObjectStoreError,
  type StoredObject,
  throwIfAborted,
} from './objectstore.ts'

const Config = v.strictObject({
  folder: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(200),
      v.regex(
        /^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/,
        'must be a relative path of letters, digits, dots, hyphens and underscores.',
      ),
      v.description('Folder below the archives folder of the data directory.'),
    ),
    'default',
  ),
})

/** Ends the name of what is still being written; such a file is never listed. */
const PARTIAL = '.partial'

function explain(error: unknown, signal?: AbortSignal): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  if (signal?.aborted) return new ObjectStoreError('aborted', 'The work was cancelled.')
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return missing()
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new ObjectStoreError('full', 'The disk of the backup folder is full. Free space, then try again.')
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new ObjectStoreError('denied', 'The backup folder cannot be written by Portreeve.')
  // Such as a disk that breaks.
  if (code !== undefined)
    return new ObjectStoreError('failed', `The backup folder cannot be used (${code}).`, { cause: error })
  throw error
}

/** How often it is looked whether the disk still has room: nobody knows how long a dump will be. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024

/** Puts a name that was given or taken on the disk. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Writes a stream to a file, down to the disk. The file is open before the stream is asked for its first byte
 * and closed when this ends: a file that is still being opened would appear after its removal.
 */
async function writeFile(path: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal) {
  const handle = await open(path, 'w', 0o600)
  try {
    await pipeline(source, handle.createWriteStream({ flush: true }), signal ? { signal } : {})
  } finally {
    await handle.close()
  }
}

/**
 * A folder of this machine. An object never takes what the disk keeps for Portreeve itself and for what runs.
 * @param free bytes that backups may still put on the disk of a folder.
 */
export function createLocalStore(root: string, free = freeForBackups): ObjectStore {
  const requireRoom = () => {
    if (free(root) <= 0)
      throw new ObjectStoreError(
        'full',
        'The disk of the backup folder is full: what is left of it is kept for Portreeve itself and for what runs. Free space, then try again.',
      )
  }
  const pathOf = (key: string) => {
    checkKey(key)
    return join(root, key)
  }
  async function* walk(folder: string): AsyncGenerator<string> {
    const entries = await opendir(folder).catch(() => undefined)
    if (!entries) return
    for await (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) yield* walk(path)
      else if (entry.isFile() && !entry.name.endsWith(PARTIAL)) yield path
    }
  }
  const store: ObjectStore = {
    async put(key, source, { signal, onProgress } = {}) {
      const path = pathOf(key)
      const partial = `${path}${PARTIAL}`
      let size_bytes = 0
      let next_look = LOOK_EVERY_BYTES
      // What the source throws is its own error, not one of this store.
      let fault: { error: unknown } | undefined
      const counted = async function* () {
        try {
          for await (const chunk of source) {
            size_bytes += chunk.byteLength
            if (size_bytes >= next_look) {
              requireRoom()
              next_look = size_bytes + LOOK_EVERY_BYTES
            }
            yield chunk
            onProgress?.(size_bytes)
          }
        } catch (error) {
          fault = { error }
          throw error
        }
      }
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 })
        requireRoom()
        await writeFile(partial, counted(), signal)
        await rename(partial, path)
        await syncFolder(dirname(path))
        return { size_bytes }
      } catch (error) {
        await rm(partial, { force: true })
        throw fault && !signal?.aborted ? fault.error : explain(error, signal)
      }
    },
    async *get(key, range, signal) {
      throwIfAborted(signal)
      try {
        const stream = createReadStream(pathOf(key), { ...range, ...(signal ? { signal } : {}) })
        yield* stream as AsyncIterable<Uint8Array>
      } catch (error) {
        throw explain(error, signal)
      }
    },
    async stat(key) {
      const found = await stat(pathOf(key)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
        throw explain(error)
      })
      return found?.isFile() ? { key, size_bytes: found.size } : undefined
    },
    async *list(prefix): AsyncGenerator<StoredObject> {
      for await (const path of walk(root)) {
        const key = relative(root, path)
        if (!key.startsWith(prefix)) continue
        const found = await store.stat(key)
        if (found) yield found
      }
    },
    async delete(key) {
      // Also what a process that was killed had written of it: nobody else would find that.
      for (const path of [pathOf(key), `${pathOf(key)}${PARTIAL}`])
        await rm(path, { force: true }).catch((error: unknown) => {
          throw explain(error)
        })
    },
    close: async () => {},
  }
  return store
}

export const local: ObjectStoreDescriptor = {
  kind: 'local',
  title: 'Folder on this server',
  config: Config,
  secrets: [],
  location: (config) => `folder ${(config as v.InferOutput<typeof Config>).folder}`,
  create: (config, { local_directory }) =>
    createLocalStore(join(local_directory, (config as v.InferOutput<typeof Config>).folder)),
}
