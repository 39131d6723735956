import { readdir, readFile, readlink, stat, statfs } from 'node:fs/promises'
import { run, type RunOptions, SpawnError } from '#server/kernel/process'

/** A volume where a container has it. */
export interface MountedVolume {
  name: string
  path: string
}
/** A container whose processes are looked at. */
export interface LookedAt {
  id: string
  volumes: readonly MountedVolume[]
}
/** Bytes on the disk that no walk over folders finds, by volume, and by container where they are in its layer. */
export interface Unlinked {
  volumes: Map<string, number>
  layers: Map<string, number>
}

const LIMIT_MS = 60_000
const WALK_LIMIT_MS = 600_000
const BLOCK_BYTES = 512
/** From here on it is worth knowing in which volume a file was. */
const WORTH_A_NAME_BYTES = 1024 ** 2
const CONTAINER_ID = /[0-9a-f]{64}/
/** So many files of one folder are not worth counting: what is in them tells what they take. */
const FEW_FILES = 10_000
/** Arguments that one program takes are bounded. */
const AT_ONCE = 500

const grow = (sums: Map<string, number>, key: string, bytes: number) =>
  sums.set(key, (sums.get(key) ?? 0) + bytes)

/** Each line that a program of the system prints; none where there is no such program. */
export async function eachLine(
  argv: readonly string[],
  timeout_ms: number,
  take: (line: string) => void,
): Promise<void> {
  const onLine: RunOptions['onLine'] = (line, stream) => stream === 'stdout' && take(line)
  await run(argv, { cwd: '/', timeout_ms, onLine }).catch((error: unknown) => {
    if (!(error instanceof SpawnError)) throw error
  })
}

/** Processes of this machine by the container in whose group they are. */
async function processesByContainer(): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '') // It may have ended.
    const id = CONTAINER_ID.exec(groups)?.[0]
    if (id) found.set(id, [...(found.get(id) ?? []), pid])
  }
  return found
}

/** Calls back for each file without a name that these processes hold, by a descriptor or in memory. */
async function eachHeld(
  pids: readonly string[],
  take: (path: string, bytes: number, dev: number, inode: string) => void,
): Promise<void> {
  for (let at = 0; at < pids.length; at += AT_ONCE) {
    const folders = pids
      .slice(at, at + AT_ONCE)
      .flatMap((pid) => [`/proc/${pid}/fd`, `/proc/${pid}/map_files`])
    const which = ['-maxdepth', '1', '-type', 'f', '-links', '0', '-printf', '%p %b %D %i\\n']
    await eachLine(['find', '-L', ...folders, ...which], LIMIT_MS, (line) => {
      const [, path, blocks, dev, inode] = /^(\/proc\/\S+) (\d+) (\d+) (\d+)$/.exec(line) ?? []
      if (path) take(path, Number(blocks) * BLOCK_BYTES, Number(dev), inode!)
    })
  }
}

const deviceOf = async (path: string): Promise<number | undefined> =>
  (await stat(path).catch(() => undefined))?.dev

/** The volume below which a path is; the first one where that cannot be told. */
function volumeOf(volumes: readonly MountedVolume[], path: string): MountedVolume | undefined {
  const around = volumes.filter((one) => path.startsWith(`${one.path.replace(/\/$/, '')}/`))
  return around.sort((a, b) => b.path.length - a.path.length)[0] ?? volumes[0]
}

/**
 * What containers keep open after its name was removed: it takes the disk until they end. Only on the machine of
 * the engine and as root; nothing elsewhere. A file that several hold counts once.
 */
export async function unlinkedBytes(containers: readonly LookedAt[]): Promise<Unlinked> {
  const result: Unlinked = { volumes: new Map(), layers: new Map() }
  if (process.getuid?.() !== 0 || containers.length === 0) return result
  const processes = await processesByContainer()
  const seen = new Set<string>()
  for (const { id, volumes } of containers) {
    const pids = processes.get(id) ?? []
    const layer = pids[0] && (await deviceOf(`/proc/${pids[0]}/root`))
    const disks = new Set(
      await Promise.all(volumes.map(({ path }) => deviceOf(`/proc/${pids[0]}/root${path}`))),
    )
    const large: { path: string; bytes: number }[] = []
    await eachHeld(pids, (path, bytes, dev, inode) => {
      if (seen.has(`${dev} ${inode}`)) return
      seen.add(`${dev} ${inode}`)
      if (dev === layer) grow(result.layers, id, bytes)
      else if (!disks.has(dev))
        return // A folder in memory: its limit is that of the container.
      else if (bytes >= WORTH_A_NAME_BYTES) large.push({ path, bytes })
      else grow(result.volumes, volumes[0]!.name, bytes)
    })
    for (const { path, bytes } of large) {
      const volume = volumeOf(volumes, await readlink(path).catch(() => ''))
      if (volume) grow(result.volumes, volume.name, bytes)
    }
  }
  return result
}

/** What `du` sums up of each folder; nothing of one that cannot be walked from here. */
async function walked(folders: readonly string[], ...which: string[]): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (let at = 0; at < folders.length; at += AT_ONCE)
    await eachLine(
      ['du', '-s', '-x', ...which, '--', ...folders.slice(at, at + AT_ONCE)],
      WALK_LIMIT_MS,
      (line) => {
        const [, sum, folder] = /^(\d+)\t(.*)$/.exec(line) ?? []
        if (folder) found.set(folder, Number(sum))
      },
    )
  return found
}

/** Bytes of the disk for each file that its table has room for; 0 where it makes room as it goes. */
async function bytesPerFile(folder: string): Promise<number> {
  const { bsize, blocks, files } = await statfs(folder).catch(() => ({ bsize: 0, blocks: 0, files: 0 }))
  return files > 0 ? (bsize * blocks) / files : 0
}

/**
 * What folders take of the disk, by folder: a file may have blocks beyond its end, which its size does not tell; and
 * a disk is full for everybody, too, when no further file has room in its table, however little is in them. So
 * whoever has very many files takes their share of the disk, where that is more than what is in them. Nothing for a
 * folder that cannot be walked from here.
 */
export async function allocatedBytes(folders: readonly string[]): Promise<Map<string, number>> {
  if (process.getuid?.() !== 0) return new Map()
  const found = await walked(folders, '-B1')
  for (const [folder, files] of await walked(folders, '--inodes')) {
    if (files <= FEW_FILES) continue
    const share = Math.ceil((files - FEW_FILES) * (await bytesPerFile(folder)))
    found.set(folder, Math.max(found.get(folder) ?? 0, share))
  }
  return found
}
