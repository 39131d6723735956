import { posix } from 'node:path'
import { pipeline } from 'node:stream'
import { foldersAbove } from '#server/kernel/mount-path'
import { firstBytes } from '#server/kernel/first-bytes'
import type { Header, Pack } from 'tar-stream'
import type { Connection } from '../connection.ts'
import type { Containers } from './containers.ts'
import { EngineError } from '../engine.ts'
import { toEngineError } from '../failures.ts'
import { rootUser } from '../users.ts'
import type { Firm } from './places.ts'
import type { ContainerSpec, Mount } from '../workload.ts'

const FOLDER_MODE = 0o755
const DEADLINE_MS = 60_000
/** An image's list of users is its author's: so much of it is read, which is more than any real one has. */
const MOST_TEXT_BYTES = 256 * 1024

interface User {
  uid: number
  gid: number
}
type FileMount = Extract<Mount, { kind: 'file' }>

/**
 * Completes a container that was created and never ran: joins further networks, writes its inline files, and gives its volumes to the
 * image's user. A fresh volume belongs to root, in which an image with another user could write nothing. All of it
 * goes through the engine's archive calls: an image needs no `chown`, not even a shell. Answers how it has to be made
 * instead where the engine is to start it again by itself.
 */
export async function prepare(
  connection: Connection,
  containers: Containers,
  { id, spec }: { id: string; spec: ContainerSpec },
  signal: AbortSignal,
): Promise<Firm | undefined> {
  for (const network of spec.more_networks ?? []) await joinNetwork(connection, id, { network }, signal)
  if (spec.shared_network !== undefined)
    await joinShared(connection, id, { network: spec.shared_network, aliases: spec.aliases ?? [] }, signal)
  const mounts = spec.mounts ?? []
  // The image may have volumes of its own.
  const info = await containers.find(id, signal)
  if (!info) return undefined
  const name = info.Config.User ?? ''
  const files = mounts.filter((mount) => mount.kind === 'file')
  const needs_filling = mounts.length > 0 && (!isRoot(name) || files.length > 0)
  return containers.whileSafe(
    { info, spec },
    needs_filling
      ? async () => {
          const root = isRoot(name) ? 0 : await rootUser(connection, signal)
          await fill(createArchive(connection, id, signal), { mounts, files, name, root })
        }
      : undefined,
    signal,
  )
}

/** Gives volumes to the image's user and writes files, both by the engine's archive calls. */
async function fill(
  archive: Archive,
  {
    mounts,
    files,
    name,
    root,
  }: { mounts: readonly Mount[]; files: readonly FileMount[]; name: string; root: number },
): Promise<void> {
  const user = await userOf(archive, name)
  for (const mount of mounts)
    if (mount.kind === 'volume' && !mount.read_only && user.uid !== 0)
      await giveTo(archive, { path: mount.path, root }, user)
  if (files.length === 0) return
  try {
    await writeFiles(archive, files, user)
  } catch (error) {
    throw (await inTheWay(archive, files, error)) ?? error
  }
}

/** What of the image keeps a file from being written; asked for only after it could not be. */
async function inTheWay(
  archive: Archive,
  files: readonly FileMount[],
  cause: unknown,
): Promise<EngineError | undefined> {
  if (!(cause instanceof EngineError) || cause.code === 'aborted' || cause.code === 'unavailable') return
  const typeOf = async (path: string) =>
    (await archive.header(path).catch(() => undefined))?.type ?? undefined
  for (const { path } of files) {
    const is_folder = (await typeOf(path)) === 'directory'
    if (is_folder) return refused(path, 'the image has a folder there', cause)
    for (const above of foldersAbove(path))
      if ((await typeOf(above)) === 'file') return refused(path, `the image has a file at ${above}`, cause)
  }
}

const refused = (path: string, reason: string, cause: EngineError): EngineError =>
  new EngineError(
    'file_refused',
    `The file ${path} cannot be written: ${reason}.`,
    'Give the file another path.',
    { cause },
  )

/** One that is gone leaves the container where it would be without a cluster. */
async function joinShared(
  ...[connection, id, network, signal]: Parameters<typeof joinNetwork>
): Promise<void> {
  await joinNetwork(connection, id, network, signal).catch((error: unknown) => {
    if (!(error instanceof EngineError && error.code === 'not_found')) throw error
  })
}

/** Joins one more network; after an attempt that was cut off, the container is in it already. */
export async function joinNetwork(
  connection: Connection,
  id: string,
  { network, aliases }: { network: string; aliases?: readonly string[] },
  signal?: AbortSignal,
): Promise<void> {
  try {
    await connection.call<void>({
      method: 'POST',
      path: `/networks/${encodeURIComponent(network)}/connect`,
      body: { Container: id, ...(aliases ? { EndpointConfig: { Aliases: aliases } } : {}) },
      ...(signal ? { signal } : {}),
      deadline_ms: DEADLINE_MS,
    })
  } catch (error) {
    const cause = error instanceof EngineError && error.cause instanceof Error ? error.cause.message : ''
    if (!/already exists in network|already attached/i.test(`${String(error)} ${cause}`)) throw error
  }
}

/** Loaded when first used: most containers have no mounts. */
const newPack = async (): Promise<Pack> => (await import('tar-stream')).pack()

type Entry = AsyncIterable<Buffer> & { header: Header }
type Archive = ReturnType<typeof createArchive>

/** Reads and writes paths inside a container. */
function createArchive(connection: Connection, id: string, signal: AbortSignal) {
  const path = `/containers/${encodeURIComponent(id)}/archive`
  const open = (method: 'GET' | 'HEAD', inside: string) =>
    connection.stream({
      method,
      path,
      query: { path: inside },
      signal,
      deadline_ms: DEADLINE_MS,
      // An engine that stops half-way would keep whoever starts it, and after it every other app, waiting for ever.
      whole_ms: DEADLINE_MS,
    })
  /** Reads the first entry below a path, which is that of the path itself; the rest is not waited for. */
  async function first<T>(inside: string, read: (entry: Entry) => Promise<T>): Promise<T | undefined> {
    const { extract } = await import('tar-stream')
    const answer = await open('GET', inside)
    try {
      const entries = extract()
      // An answer that breaks off ends the reading, too; the reading throws what it was.
      pipeline(answer, entries, () => {})
      for await (const entry of entries as AsyncIterable<Entry>) return await read(entry)
      return undefined
    } catch (error) {
      throw toEngineError(error)
    } finally {
      answer.destroy()
    }
  }
  return {
    async exists(inside: string): Promise<boolean> {
      try {
        ;(await open('HEAD', inside)).destroy()
        return true
      } catch (error) {
        if (error instanceof EngineError && error.code === 'not_found') return false
        throw error
      }
    },
    header: (inside: string): Promise<Header | undefined> => first(inside, async ({ header }) => header),
    /** The beginning of a text file, in whole lines; nothing where there is no such file. */
    beginning: (inside: string): Promise<string | undefined> =>
      first(inside, (entry) => (entry.header.type === 'file' ? beginningOf(entry) : Promise.resolve(''))),
    async write(folder: string, pack: Pack): Promise<void> {
      const answer = await connection.stream({
        method: 'PUT',
        path,
        query: { path: folder, noOverwriteDirNonDir: true },
        upload: pack,
        signal,
        deadline_ms: DEADLINE_MS,
      })
      answer.resume()
    },
  }
}

async function beginningOf(file: AsyncIterable<Buffer>): Promise<string> {
  const { bytes, truncated } = await firstBytes(file, MOST_TEXT_BYTES)
  const text = bytes.toString('utf8')
  return truncated ? text.slice(0, text.lastIndexOf('\n') + 1) : text
}

const isRoot = (name: string): boolean => ['', 'root', '0'].includes(name.split(':')[0]!)

/** The image's user in numbers: `USER` may name it, or leave out its group. */
async function userOf(archive: Archive, name: string): Promise<User> {
  const [user = '', group] = name.split(':')
  if (isRoot(name)) return { uid: 0, gid: 0 }
  const rows = async (file: string) => {
    const text = await archive.beginning(file).catch((error: unknown) => {
      if (error instanceof EngineError && error.code === 'not_found') return undefined
      throw error
    })
    return (text ?? '').split('\n').map((line) => line.split(':'))
  }
  const known = (await rows('/etc/passwd')).find(([own, , uid]) => own === user || uid === user)
  const uid = Number(known?.[2] ?? user)
  const gid =
    group === undefined
      ? Number(known?.[3] ?? 0)
      : Number((await rows('/etc/group')).find(([own, , id]) => own === group || id === group)?.[2] ?? group)
  // Names that the image does not know are told by the engine when the container starts.
  return Number.isInteger(uid) && Number.isInteger(gid) ? { uid, gid } : { uid: 0, gid: 0 }
}

/** Changes the owner of a volume's own folder while it is root's; what is in it is left alone. */
async function giveTo(
  archive: Archive,
  { path, root }: { path: string; root: number },
  user: User,
): Promise<void> {
  const header = await archive.header(path)
  if (header?.type !== 'directory' || (header.uid !== 0 && header.uid !== root)) return
  const pack = await newPack()
  pack.entry({
    name: `${posix.basename(path)}/`,
    type: 'directory',
    mode: header.mode ?? FOLDER_MODE,
    ...user,
  })
  pack.finalize()
  await archive.write(posix.dirname(path), pack)
}

/** Writes files with the folders above them that the image lacks; others keep their mode and owner. */
async function writeFiles(archive: Archive, files: readonly FileMount[], user: User): Promise<void> {
  const pack = await newPack()
  const made = new Set<string>()
  for (const { path, content, mode } of files) {
    for (const folder of foldersAbove(path)) {
      if (made.has(folder) || (await archive.exists(folder))) continue
      made.add(folder)
      pack.entry({ name: `${folder.slice(1)}/`, type: 'directory', mode: FOLDER_MODE, uid: 0, gid: 0 })
    }
    pack.entry({ name: path.slice(1), mode, ...user }, content)
  }
  pack.finalize()
  await archive.write('/', pack)
}
