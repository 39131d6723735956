import type { ContextEntry } from './context.ts'
import { openContextFile, walkContext } from './context.ts'
import type { Packet } from './wire.ts'

/** Kinds of packets of BuildKit's file transfer. */
const STAT = 0
const REQUEST = 1
const DATA = 2
const FINISH = 3
const CHUNK_BYTES = 128 * 1024

/** Go's file mode bits, which differ from POSIX's above the permissions. */
const GO_FOLDER = 2 ** 31
const GO_LINK = 2 ** 27
const GO_SETUID = 2 ** 23
const GO_SETGID = 2 ** 22
const GO_STICKY = 2 ** 20

/** The other end of a transfer, as gRPC gives it. */
export interface SyncCall {
  write(packet: Packet): boolean
  once(event: 'drain', listener: () => void): unknown
  end(): unknown
  readonly cancelled: boolean
  iterator(options: { destroyOnReturn: boolean }): AsyncIterable<Packet>
}

/** Where files come from: `entries` in sending order, `read` yields a file's bytes. */
export interface SyncSource {
  entries(): AsyncIterable<ContextEntry>
  read(path: string): AsyncIterable<Buffer>
}

/** The whole build context, as `.dockerignore` leaves it. */
export function contextSource(context: string): SyncSource {
  return {
    entries: () => walkContext(context),
    async *read(path) {
      const file = await openContextFile(context, path)
      try {
        const buffer = Buffer.alloc(CHUNK_BYTES)
        for (;;) {
          const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES)
          if (bytesRead === 0) return
          yield Buffer.from(buffer.subarray(0, bytesRead))
        }
      } finally {
        await file.close()
      }
    },
  }
}

/** A folder that holds one file with this text. */
export function textSource(name: string, text: string): SyncSource {
  const content = Buffer.from(text)
  return {
    async *entries() {
      yield { path: name, kind: 'file', mode: 0o644, size: content.length, modified_ms: 0 }
    },
    async *read() {
      yield content
    },
  }
}

export const emptySource: SyncSource = { async *entries() {}, async *read() {} }

function goMode(entry: ContextEntry): number {
  const special =
    (entry.mode & 0o4000 ? GO_SETUID : 0) +
    (entry.mode & 0o2000 ? GO_SETGID : 0) +
    (entry.mode & 0o1000 ? GO_STICKY : 0)
  const type = { folder: GO_FOLDER, link: GO_LINK, file: 0 }[entry.kind]
  return (entry.mode & 0o777) + special + type
}

/**
 * Sends a folder the way BuildKit asks for it: first what there is, in order; then the bytes of those files
 * that it wants, named by their place in that order. Owners are left out, since those of this machine mean
 * nothing in an image.
 */
export async function sendFiles(call: SyncCall, source: SyncSource): Promise<void> {
  const paths: string[] = []
  const send = async (packet: Packet) => {
    if (!call.write(packet)) await new Promise<void>((resolve) => call.once('drain', resolve))
  }
  async function announce(): Promise<void> {
    for await (const entry of source.entries()) {
      if (call.cancelled) return
      paths.push(entry.path)
      await send({
        type: STAT,
        stat: {
          path: entry.path,
          mode: goMode(entry),
          uid: 0,
          gid: 0,
          size: entry.size,
          modTime: `${Math.round(entry.modified_ms)}000000`,
          ...(entry.target === undefined ? {} : { linkname: entry.target }),
        },
      })
    }
    await send({ type: STAT })
  }
  const announcing = announce()
  // The builder waits for the end of what it was told, and would do so until the time limit of the build.
  const failed = new Promise<never>((_, reject) => {
    announcing.catch(reject)
  })
  failed.catch(() => {})
  const packets = call.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]()
  for (;;) {
    const { value: packet, done } = await Promise.race([packets.next(), failed])
    if (done || packet.type === FINISH) break
    if (packet.type !== REQUEST) continue
    const id = packet.ID ?? 0
    const path = paths[id]
    if (path === undefined) throw new Error('the builder asked for a file that was not announced')
    for await (const data of source.read(path)) {
      if (call.cancelled) return
      await send({ type: DATA, ID: id, data })
    }
    await send({ type: DATA, ID: id })
  }
  await announcing
  if (call.cancelled) return
  await send({ type: FINISH })
  call.end()
}
