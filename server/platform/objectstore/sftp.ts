import type { FileEntryWithStats, SFTPWrapper, Stats } from 'ssh2'
import * as v from 'valibot'
import { SECRET } from '#server/kernel/schemas'
import type { Dial } from '#server/platform/outbound/outbound'
import {
  checkKey,
  type ObjectStore,
  type ObjectStoreDescriptor,
  ObjectStoreError,
  type PutOptions,
  type StoredObject,
  throwIfAborted,
} from './objectstore.ts'
import { connectSftp, explainSftp, type SftpConfig, type SftpConnection } from './sftp-connection.ts'
import { NO_SUCH_FILE, SILENCE_MS, silent } from './sftp-connection.ts'

const Config = v.pipe(
  v.strictObject({
    host: v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(253),
      v.regex(/^[A-Za-z0-9.:-]+$/, 'must be a host name or an address.'),
    ),
    port: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65535)), 22),
    username: v.pipe(v.string(), v.minLength(1), v.maxLength(100)),
    password: v.optional(
      v.pipe(v.string(), v.minLength(1), v.maxLength(1000), v.description('Never shown.'), SECRET),
    ),
    private_key: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(16_384),
        v.description('Private key without a passphrase, as OpenSSH writes it. Never shown.'),
        SECRET,
      ),
    ),
    host_key: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^SHA256:[A-Za-z0-9+/]{43}$/, 'must be a fingerprint such as SHA256:…'),
        v.description(
          "Fingerprint of the server's key. Without it nothing is sent, and the error names the key that the server shows.",
        ),
      ),
    ),
    path: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(500),
        v.check((text) => !/[\0\r\n]/.test(text) && !text.split('/').includes('..'), 'must be a path.'),
        v.description('Folder on the server; relative ones begin at the home of the user.'),
      ),
      'portreeve-backups',
    ),
  }),
  v.check(
    ({ password, private_key }) => password !== undefined || private_key !== undefined,
    'needs a password or a private_key.',
  ),
)

const PARTIAL = '.partial'
/** The protocol's usual piece; so many travel at once that a long way to the server costs little. */
const PIECE_BYTES = 32_768
const IN_FLIGHT = 32

/** Files and folders of a list; more than any installation writes. */
const MOST_ENTRIES = 5_000_000
/** What lies deeper than a key is long is none of ours. */
const LONGEST_KEY = 512
/** Status of the protocol. */
const END_OF_FOLDER = 1

type Callback<T> = (error: Error | undefined | null, value: T) => void
type Call = <T = void>(start: (done: Callback<T>) => void) => Promise<T>
const within =
  (silence_ms: number, onSilence: () => void): Call =>
  (start) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(silent())
        onSilence()
      }, silence_ms)
      start((error, value) => {
        clearTimeout(timer)
        if (error) reject(error)
        else resolve(value)
      })
    })

/** Makes a folder and those above it; existing ones are fine. */
async function ensureFolder(call: Call, sftp: SFTPWrapper, path: string): Promise<void> {
  const parts = path.split('/')
  for (let length = 1; length <= parts.length; length += 1) {
    const folder = parts.slice(0, length).join('/')
    if (folder === '') continue
    const exists = await call<Stats>((done) => sftp.stat(folder, done)).then(
      () => true,
      (error: unknown) => {
        if (error instanceof ObjectStoreError) throw error
        return false
      },
    )
    if (!exists) await call((done) => sftp.mkdir(folder, { mode: 0o700 }, done as never))
  }
}

/** Writes a stream with many pieces under way at once. */
async function write(
  call: Call,
  sftp: SFTPWrapper,
  handle: Buffer,
  source: AsyncIterable<Uint8Array>,
  { signal, onProgress }: PutOptions,
): Promise<number> {
  const under_way = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined
  let position = 0
  for await (const chunk of source) {
    for (let from = 0; from < chunk.byteLength; from += PIECE_BYTES) {
      throwIfAborted(signal)
      if (failure) throw failure.error
      const piece = Buffer.from(chunk.subarray(from, from + PIECE_BYTES))
      const at = position
      position += piece.length
      const one = call((done) => sftp.write(handle, piece, 0, piece.length, at, done as never)).catch(
        (error: unknown) => {
          failure ??= { error }
        },
      )
      under_way.add(one)
      void one.finally(() => under_way.delete(one))
      if (under_way.size >= IN_FLIGHT) await Promise.race(under_way)
    }
    onProgress?.(position)
  }
  await Promise.all(under_way)
  if (failure) throw failure.error
  return position
}

export function createSftpStore(
  config: SftpConfig,
  dial: Dial,
  silence_ms = SILENCE_MS,
  most_entries = MOST_ENTRIES,
): ObjectStore {
  let opening: Promise<SftpConnection> | undefined
  // What it still holds is worth nothing; the next call makes a connection of its own.
  const drop = (): void => {
    void opening?.then(({ client }) => client.destroy())
    opening = undefined
  }
  const call = within(silence_ms, drop)
  const connection = (): Promise<SftpConnection> => {
    opening ??= connectSftp(dial, config, silence_ms).then((made) => {
      // A broken connection is made anew by the next call.
      made.client.on('close', () => (opening = undefined)).on('error', () => (opening = undefined))
      return made
    })
    opening.catch(() => (opening = undefined))
    return opening
  }
  const pathOf = (key: string) => {
    checkKey(key)
    return config.path === '' ? key : `${config.path.replace(/\/+$/, '')}/${key}`
  }
  async function using<T>(work: (sftp: SFTPWrapper) => Promise<T>): Promise<T> {
    try {
      return await work((await connection()).sftp)
    } catch (error) {
      throw explainSftp(error, config.host)
    }
  }
  const orNone = (error: { code?: unknown }) => {
    if (error.code === NO_SUCH_FILE) return undefined
    throw error
  }
  const stat = (sftp: SFTPWrapper, path: string) => call<Stats>((done) => sftp.stat(path, done)).catch(orNone)
  /** Piece by piece, as the server tells them: all at once are as many as it likes. */
  async function* entriesOf(sftp: SFTPWrapper, folder: string): AsyncGenerator<FileEntryWithStats> {
    const handle = await call<Buffer>((done) => sftp.opendir(folder || '.', done)).catch(orNone)
    if (!handle) return
    try {
      for (;;) {
        const piece = await call<FileEntryWithStats[]>((done) => sftp.readdir(handle, done)).catch(
          (error: { code?: unknown }) => {
            if (error.code === END_OF_FOLDER) return undefined
            throw error
          },
        )
        if (!piece) return
        yield* piece
      }
    } finally {
      await call((done) => sftp.close(handle, done as never)).catch(() => {})
    }
  }
  async function* walk(
    sftp: SFTPWrapper,
    folder: string,
    prefix: string,
    seen: { entries: number },
  ): AsyncGenerator<StoredObject> {
    for await (const { filename, attrs } of entriesOf(sftp, folder)) {
      seen.entries += 1
      // A folder may lie in itself, too.
      if (seen.entries > most_entries)
        throw new ObjectStoreError('failed', 'The list of files on the SFTP server does not end.')
      if (filename === '.' || filename === '..') continue
      const path = folder === '' ? filename : `${folder}/${filename}`
      if (attrs.isDirectory() && prefix.length < LONGEST_KEY)
        yield* walk(sftp, path, `${prefix}${filename}/`, seen)
      else if (attrs.isFile() && !filename.endsWith(PARTIAL))
        yield { key: `${prefix}${filename}`, size_bytes: attrs.size }
    }
  }
  return {
    async put(key, source, options = {}) {
      const path = pathOf(key)
      // What the source throws is its own error, not one of the server.
      let fault: { error: unknown } | undefined
      const watched = async function* () {
        try {
          yield* source
        } catch (error) {
          fault = { error }
          throw error
        }
      }
      return using(async (sftp) => {
        await ensureFolder(call, sftp, path.slice(0, Math.max(0, path.lastIndexOf('/'))))
        const partial = `${path}${PARTIAL}`
        const handle = await call<Buffer>((done) => sftp.open(partial, 'w', { mode: 0o600 }, done))
        try {
          const size_bytes = await write(call, sftp, handle, watched(), options)
          await call((done) => sftp.close(handle, done as never))
          await call((done) => sftp.ext_openssh_rename(partial, path, done as never)).catch(async () => {
            // A server without that extension does not replace: the old object goes first.
            await call((done) => sftp.unlink(path, done as never)).catch(() => {})
            await call((done) => sftp.rename(partial, path, done as never))
          })
          return { size_bytes }
        } catch (error) {
          await call((done) => sftp.close(handle, done as never)).catch(() => {})
          await call((done) => sftp.unlink(partial, done as never)).catch(() => {})
          throw error
        }
      }).catch((error: unknown) => {
        throw fault ? fault.error : error
      })
    },
    async *get(key, range, signal) {
      const path = pathOf(key)
      throwIfAborted(signal)
      const { sftp } = await using(async (made) => ({ sftp: made }))
      const stream = sftp.createReadStream(path, {
        ...(range ? { start: range.start } : {}),
        ...(range?.end === undefined ? {} : { end: range.end }),
        highWaterMark: 256 * 1024,
      })
      const stop = () => stream.destroy(new ObjectStoreError('aborted', 'The work was cancelled.'))
      signal?.addEventListener('abort', stop, { once: true })
      const chunks = (stream as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
      try {
        for (;;) {
          // While nobody takes what came the server has nothing to say.
          const { done, value } = await call<IteratorResult<Uint8Array>>((came) => {
            chunks.next().then(
              (next) => came(null, next),
              (error: Error) => came(error, undefined as never),
            )
          })
          if (done) return
          yield value
        }
      } catch (error) {
        throw explainSftp(error, config.host)
      } finally {
        stream.destroy()
        signal?.removeEventListener('abort', stop)
      }
    },
    stat: (key) =>
      using(async (sftp) => {
        const found = await stat(sftp, pathOf(key))
        return found?.isFile() ? { key, size_bytes: found.size } : undefined
      }),
    async *list(prefix) {
      const { sftp } = await using(async (made) => ({ sftp: made }))
      try {
        for await (const found of walk(sftp, config.path.replace(/\/+$/, ''), '', { entries: 0 }))
          if (found.key.startsWith(prefix)) yield found
      } catch (error) {
        throw explainSftp(error, config.host)
      }
    },
    delete: (key) =>
      using(async (sftp) => {
        // Also what a connection that broke, or a process that was killed, has left of it.
        for (const path of [pathOf(key), `${pathOf(key)}${PARTIAL}`])
          await call((done) => sftp.unlink(path, done as never)).catch((error: { code?: unknown }) => {
            if (error.code !== NO_SUCH_FILE) throw error
          })
      }),
    async close() {
      // A connection that is still being made has its own time; nobody waits for it here.
      void opening?.then(
        ({ client }) => client.end(),
        () => {},
      )
      opening = undefined
    },
  }
}

export const sftp: ObjectStoreDescriptor = {
  kind: 'sftp',
  title: 'SFTP server',
  config: Config,
  secrets: ['password', 'private_key'],
  location: (config) => {
    const { username, host, port, path } = config as unknown as SftpConfig
    // Below the folder that the server puts the user in, unless it begins at the root.
    return `${username}@${host}:${port}${path.startsWith('/') ? path : `/~/${path}`}`
  },
  create: (config, { dial }) => createSftpStore(config as unknown as SftpConfig, dial),
}
