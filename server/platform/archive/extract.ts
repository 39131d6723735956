import { createReadStream } from 'node:fs'
import { chmod, mkdir, mkdtemp, open, readdir, rename, rmdir, symlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract as createTarReader, type Header } from 'tar-stream'
import { atMost } from '#server/kernel/at-most'
import { sparingReserve } from '#server/kernel/disk-reserve'
import { removeTree } from '#server/kernel/removal'
import { ArchiveError, damaged, notGzip, tooLarge, tooManyFiles, unsafe } from './errors.ts'
import { linkStaysInside } from './inside.ts'
import { limitRecords } from './records.ts'

export { ArchiveError } from './errors.ts'

type Entry = AsyncIterable<Uint8Array> & { header: Header; resume(): void }

export interface ArchiveLimits {
  /** Bytes of all files together, unpacked. */
  max_bytes: number
  /** Files, links and folders together, those that only paths name included. */
  max_files: number
  /** Bytes of all paths and targets of links together, which are kept in memory until the end. */
  max_names_bytes: number
  /** Bytes of the archive itself. */
  max_compressed_bytes: number
}
interface ExtractOptions extends Partial<ArchiveLimits> {
  /** Whether nothing but the reserve is left on the disk of a folder. Default: as the system says. */
  isDiskFull?: (directory: string) => boolean
}
export interface Extracted {
  files: number
  size_bytes: number
  /** Name of the one folder that held everything and was left out. */
  stripped?: string
}

const DEFAULT_LIMITS: ArchiveLimits = {
  max_bytes: 2 * 1024 ** 3,
  max_files: 200_000,
  max_names_bytes: 64 * 1024 ** 2,
  max_compressed_bytes: 1024 ** 3,
}
/** Framing of the format: headers and padding of each entry, long names, the zeros at the end. */
const FRAMING_PER_ENTRY = 4096
const FRAMING = 16 * 1024 ** 2
const MAX_PATH = 4096
const MAX_NAME = 255

/**
 * Reads an entry's path: relative, without `.` and empty parts, never upwards. `undefined` for the archive's
 * own top.
 */
function readPath(name: string): string | undefined {
  if (name.includes('\0') || Buffer.byteLength(name) > MAX_PATH)
    throw unsafe('a path in it is too long or not valid')
  if (name.startsWith('/')) throw unsafe('it holds an absolute path')
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw unsafe('it holds a path that leads out of its folder')
  if (parts.some((part) => Buffer.byteLength(part) > MAX_NAME))
    throw unsafe('a name in it is longer than 255 bytes')
  return parts.length === 0 ? undefined : parts.join('/')
}

/** Lets bytes through up to a limit; the first ones must be gzip's own. */
async function* gate(source: AsyncIterable<Uint8Array>, max_bytes: number): AsyncGenerator<Uint8Array> {
  let head = Buffer.alloc(0)
  for await (const chunk of atMost(max_bytes, source, () => tooLarge('The archive is', max_bytes))) {
    if (head.length < 2) {
      head = Buffer.concat([head, chunk.subarray(0, 2)])
      if (head.length >= 2 && (head[0] !== 0x1f || head[1] !== 0x8b)) throw notGzip()
    }
    yield chunk
  }
  if (head.length < 2) throw notGzip()
}

function meter(source: AsyncIterable<Uint8Array>, limits: ArchiveLimits): AsyncGenerator<Uint8Array> {
  const max_bytes = limits.max_bytes + limits.max_files * FRAMING_PER_ENTRY + FRAMING
  return atMost(max_bytes, source, () => tooLarge('The files of the archive are', limits.max_bytes))
}

/** Writes entries below `root`. Links come last, when no file can be written through them any more. */
function createUnpacker(root: string, limits: ArchiveLimits) {
  const seen = new Set<string>()
  const links: { path: string; target: string }[] = []
  let entries = 0
  let names = 0
  let files = 0
  let size_bytes = 0

  async function writeFile(entry: Entry, path: string): Promise<void> {
    const file = await open(path, 'wx', 0o644)
    try {
      for await (const chunk of entry) await file.write(chunk)
      await file.chmod((entry.header.mode ?? 0) & 0o100 ? 0o755 : 0o644)
    } finally {
      await file.close()
    }
  }

  const countEntries = (count: number): void => {
    entries += count
    if (entries > limits.max_files) throw tooManyFiles(limits.max_files)
  }
  const countName = (name: string): void => {
    names += Buffer.byteLength(name)
    if (names > limits.max_names_bytes) throw unsafe('its paths are too long together')
  }

  /** Folders that no entry stands for count as well: one path may name two thousand. */
  async function makeFolder(path: string, counted: number): Promise<void> {
    const first = await mkdir(join(root, path), { recursive: true })
    if (first !== undefined)
      countEntries(relative(dirname(first), join(root, path)).split('/').length - counted)
  }

  async function take(entry: Entry): Promise<void> {
    const { name, type, size = 0, linkname, pax } = entry.header
    countEntries(1)
    const path = readPath(name)
    const is_file = type === 'file' || type === 'contiguous-file'
    if (!is_file && type !== 'directory' && type !== 'symlink')
      throw unsafe(type === 'link' ? 'it holds a hard link' : 'it holds a device or another special file')
    if (Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse')))
      throw unsafe('it holds a sparse file')
    size_bytes += size
    if (size_bytes > limits.max_bytes) throw tooLarge('The files of the archive are', limits.max_bytes)
    if (path === undefined) {
      if (type !== 'directory') throw unsafe('a file in it has no name')
      return
    }
    if (type === 'directory') return makeFolder(path, 1)
    // Files that macOS adds for attributes of other files; nothing reads them here.
    if (basename(path).startsWith('._')) return
    if (seen.has(path)) throw unsafe('it holds two files of one name')
    countName(path)
    seen.add(path)
    await makeFolder(dirname(path), 0)
    files += 1
    if (is_file) return writeFile(entry, join(root, path))
    if (!linkname || linkname.includes('\0') || Buffer.byteLength(linkname) > MAX_PATH)
      throw unsafe('a link in it has no valid target')
    countName(linkname)
    links.push({ path, target: linkname })
  }

  return {
    async take(entry: Entry): Promise<void> {
      await take(entry)
      entry.resume()
    },
    async writeLinks(): Promise<void> {
      for (const { path, target } of links) await symlink(target, join(root, path))
    },
    /** Checked against the folder that becomes the result. */
    async checkLinks(top: string, signal: AbortSignal): Promise<void> {
      for (const { path } of links) {
        signal.throwIfAborted()
        if (!(await linkStaysInside(top, join(root, path))))
          throw unsafe('it holds a link that leads out of its folder')
      }
    },
    get result() {
      return { files, size_bytes }
    },
  }
}

/** Feeds the archive through gzip and tar; the first thing that is wrong ends it. */
async function unpack(
  source: AsyncIterable<Uint8Array>,
  unpacker: ReturnType<typeof createUnpacker>,
  limits: ArchiveLimits,
  signal: AbortSignal,
): Promise<void> {
  const reader = createTarReader({ allowUnknownFormat: true } as Parameters<typeof createTarReader>[0])
  limitRecords(reader)
  const feeding = pipeline(
    source,
    (bytes) => gate(bytes, limits.max_compressed_bytes),
    createGunzip(),
    (bytes) => meter(bytes, limits),
    reader,
    { signal },
  )
  const reading = (async () => {
    for await (const entry of reader as AsyncIterable<Entry>) await unpacker.take(entry)
  })()
  const [fed, read] = await Promise.allSettled([feeding, reading])
  const failures = [read, fed].flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as NodeJS.ErrnoException] : [],
  )
  if (failures.length === 0) return
  throw (
    failures.find((error) => error instanceof ArchiveError) ??
    failures.find((error) => /^E[A-Z]+$/.test(error.code ?? '')) ??
    damaged(failures[0])
  )
}

/**
 * The only entry at the top when it is a folder, as archives of forges and of `tar czf x.tgz folder` have it.
 */
async function findTop(root: string): Promise<string | undefined> {
  const entries = await readdir(root, { withFileTypes: true })
  return entries.length === 1 && entries[0]!.isDirectory() && entries[0]!.name !== '.git'
    ? entries[0]!.name
    : undefined
}

/** Gives folders plain modes, whatever the umask was. */
async function openFolders(directory: string): Promise<void> {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { withFileTypes: true }))
    if (entry.isDirectory()) await openFolders(join(directory, entry.name))
}

function explain(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return new ArchiveError('aborted', 'Unpacking the archive was cancelled.')
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EISDIR')
    return unsafe('a name in it is both a file and a folder')
  if (code === 'ENAMETOOLONG') return unsafe('a path in it is too long or not valid')
  return error
}

/**
 * Unpacks a gzipped tar file into `directory` (absent or empty before; on any failure nothing is left of it).
 * When all entries share one top folder, that folder is left out; a `.git` folder and macOS's `._` files are,
 * too. Symbolic links may stay inside; hard links, devices, absolute paths and paths with `..` make the whole
 * archive be refused.
 */
export async function extractTarGz(
  archive: string | AsyncIterable<Uint8Array>,
  directory: string,
  signal: AbortSignal = new AbortController().signal,
  { isDiskFull, ...options }: ExtractOptions = {},
): Promise<Extracted> {
  await mkdir(dirname(directory), { recursive: true })
  return sparingReserve(
    signal,
    [dirname(directory)],
    (within) => extractInto(directory, archive, within, { ...DEFAULT_LIMITS, ...options }),
    isDiskFull,
  )
}

async function extractInto(
  directory: string,
  archive: string | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  limits: ArchiveLimits,
): Promise<Extracted> {
  const staging = await mkdtemp(`${directory}.partial-`)
  try {
    const unpacker = createUnpacker(staging, limits)
    await unpack(typeof archive === 'string' ? createReadStream(archive) : archive, unpacker, limits, signal)
    if (unpacker.result.files === 0)
      throw new ArchiveError(
        'empty',
        'The archive holds no files. Pack the folder of the app, then upload it again.',
      )
    await unpacker.writeLinks()
    const stripped = await findTop(staging)
    const top = stripped === undefined ? staging : join(staging, stripped)
    await unpacker.checkLinks(top, signal)
    await removeTree(join(top, '.git'))
    await openFolders(top)
    signal.throwIfAborted()
    await rename(top, directory)
    return { ...unpacker.result, ...(stripped === undefined ? {} : { stripped }) }
  } catch (error) {
    throw explain(error, signal)
  } finally {
    await rmdir(staging).catch(() => removeTree(staging))
  }
}
