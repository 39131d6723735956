import type { Readable, Writable } from 'node:stream'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Engine, Instance } from '#server/platform/engine/engine'
import { sparingDisk } from '#server/platform/engine/sparing-disk'
import type { ExecProcess, ExecResult } from '#server/platform/engine/workload'
import { EDGE_IMAGE } from '#server/platform/ingress/image'

/** Data of a volume, and what the container that reads or writes them is called after. */
export interface VolumePlace {
  data_id: string
  project_id: string
  /** Id of the backup, trial or restore. */
  work_id: string
}
/** What a trial restore found. */
export interface FileCounts {
  /** Files, links and folders. */
  objects: number
  /** Bytes of all files. */
  bytes: number
  /** Bytes by entry of the volume's own folder. */
  counts: Record<string, number>
}

const RELEASE_PREFIX = 'files_'
/** Whether a container of this release was made for the files of a volume. */
export const isOfVolumeFiles = (release_id: string): boolean => release_id.startsWith(RELEASE_PREFIX)

const FOLDER = '/data'
const LIMITS = { cpus: 1, memory_bytes: 256 * 1024 ** 2, pids: 32 }
/** Ends by itself when nobody comes back for it; longer than any step. */
const IDLE = ['sleep', '90000']
const TAR = ['tar', '--numeric-owner', '--xattrs', '--acls', `--directory=${FOLDER}`]
/** Longer ones no program can name in one piece, tar neither when it unpacks them. */
const LONGEST_PATH = 4089
const tooLong = (folder: string): string => `${folder}/${'?'.repeat(LONGEST_PATH + 1)}*`
/** What an app makes deeper and deeper while it is read has no end otherwise. */
const WITHOUT_TOO_LONG = `--exclude=${tooLong('.')}`
/** Asked for before anything is read: an archive that cannot be unpacked would take the place of good ones. */
const FIND_TOO_LONG = ['find', FOLDER, '-path', tooLong(FOLDER), '-printf', '%P', '-quit']
/** GNU tar ends with 1 when files changed while it read them; what it wrote is a whole archive all the same. */
const CHANGED_WHILE_READ = 1
const READ = [
  ...TAR,
  ...['--create', '--file=-', '--sparse', '--format=posix', '--pax-option=delete=atime,delete=ctime'],
  ...['--warning=no-file-changed', '--warning=no-file-ignored', WITHOUT_TOO_LONG, '.'],
]
/**
 * Each folder gets its time and mode when the next one begins. With all of them at the end
 * (`--delay-directory-restore`) tar looks through the whole list for each new one: a million
 * folders took hours.
 */
const WRITE = [
  ...TAR,
  ...['--extract', '--file=-', '--preserve-permissions', '--same-owner'],
  // Archives from before they were refused hold such paths, and everything else in them is to come
  // back.
  WITHOUT_TOO_LONG,
]
const COUNT = ['find', FOLDER, '-mindepth', '1', '-printf', '%y %s %P\\0']
const MOST_COUNTS = 1000

/**
 * Files of volumes, as a tar. They are read and written inside a container that holds nothing but
 * the volume: what an app put there, such as a link that leads elsewhere, cannot reach this server.
 */
export function createVolumeFiles(engine: Engine) {
  const releaseOf = ({ work_id }: VolumePlace) => `${RELEASE_PREFIX}${work_id.split('_').at(-1)}`

  async function imageOf(signal: AbortSignal): Promise<string> {
    // The image of the edge is on every server, and has GNU tar as every Debian has.
    const here = await engine.findImage(EDGE_IMAGE)
    return (here ?? (await engine.pullImage(EDGE_IMAGE, { onLog: () => {} }, signal))).id
  }
  async function open(place: VolumePlace, read_only: boolean, signal: AbortSignal): Promise<Instance> {
    const release_id = releaseOf(place)
    const network = `ptr-${place.project_id.replace('prj_', '')}`
    await engine.ensureNetwork(network, { project: place.project_id })
    await engine.removeRelease(release_id, 0)
    const [instance] = await engine.ensureRelease(
      {
        owner: { kind: 'task', id: place.work_id },
        project_id: place.project_id,
        release_id,
        image: await imageOf(signal),
        command: IDLE,
        // With the rights of its image's user, a container could not read what belongs to others.
        user: '0',
        environment: {},
        mounts: [{ kind: 'volume', volume_id: place.data_id, path: FOLDER, read_only }],
        network,
        limits: LIMITS,
        stop_grace_s: 0,
        probe: { type: 'none', grace_s: 0 },
        placement: { node: 'local' },
        replicas: 1,
        update: 'stop_first',
      },
      signal,
    )
    return instance!
  }
  /** Runs commands beside the volume, one after the other, and removes the container whatever happened. */
  async function* inside(
    place: VolumePlace,
    commands: readonly (readonly string[])[],
    read_only: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<ExecProcess> {
    try {
      const { id } = await open(place, read_only, signal)
      for (const command of commands) yield await engine.exec(id, { command }, signal)
    } finally {
      await engine.removeRelease(releaseOf(place), 0)
    }
  }

  return {
    /** Everything in a volume. It ends only once the whole was read; a volume in use is read as it is. */
    async *read(place: VolumePlace, signal: AbortSignal): AsyncGenerator<Uint8Array> {
      let is_looked_at = false
      for await (const command of inside(place, [FIND_TOO_LONG, READ], true, signal)) {
        command.stdin.end()
        if (is_looked_at) yield* command.stdout as Readable
        else await requireNone(command.stdout as Readable)
        is_looked_at = true
        requireWell(await command.done, CHANGED_WHILE_READ, 'The volume could not be read')
      }
    },
    /** Writes a tar into an empty volume. Throws when it breaks off, also at its very end. */
    write: (place: VolumePlace, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> =>
      sparingDisk(engine, signal, async (limited) => {
        for await (const tar of inside(place, [WRITE], false, limited)) {
          tar.done.catch(() => undefined)
          ;(tar.stdout as Readable).resume()
          await feed(tar, source)
          requireWell(await tar.done, 0, 'The volume could not be filled')
        }
      }),
    /** What is in a volume. */
    async count(place: VolumePlace, signal: AbortSignal): Promise<FileCounts> {
      const found = createCounter()
      for await (const find of inside(place, [COUNT], true, signal)) {
        find.stdin.end()
        for await (const chunk of find.stdout as Readable) found.take(chunk as Buffer)
        requireWell(await find.done, 0, 'The files could not be counted')
      }
      return found.result()
    },
    /** Removes what a process left behind that ended in the middle of such work. */
    discard: (work_id: string): Promise<void> => engine.removeLabelled({ task: work_id }),
  }
}
export type VolumeFiles = ReturnType<typeof createVolumeFiles>

/**
 * Gives a source to a command, and reads it to its end: what is there shows that all of it is what
 * was written. Of a tar that end may come much later, as where it is a part of something larger,
 * than the command ends.
 */
async function feed(tar: ExecProcess, source: AsyncIterable<Uint8Array>): Promise<void> {
  const stdin = tar.stdin as Writable
  for await (const chunk of source)
    if (stdin.destroyed) requireWell(await tar.done, 0, 'The volume could not be filled')
    else await new Promise<void>((resolve) => stdin.write(chunk, () => resolve()))
  stdin.end()
}

/** Throws for a path that is too long to be unpacked again. */
async function requireNone(found: Readable): Promise<void> {
  let path = ''
  for await (const chunk of found) path += String(chunk)
  if (path === '') return
  const beginning = path.slice(0, 100).replaceAll(/[^ -~]/g, '?')
  throw new Fatal(
    'files_failed',
    `The volume holds a path of more than ${LONGEST_PATH} bytes, which cannot be unpacked again: ${beginning}…`,
    'Remove it, then back up again.',
  )
}

/** @param tolerated the highest exit code that is well. */
function requireWell({ exit_code, stderr }: ExecResult, tolerated: number, what: string): void {
  if (exit_code <= tolerated) return
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  if (/No space left on device|Disk quota exceeded/.test(stderr))
    throw new Fatal('disk_full', 'The disk of this server is full.', 'Free space, then try again.', lines)
  throw new Fatal(
    'files_failed',
    `${what}: ${lines.at(-2) ?? lines.at(-1) ?? `exit code ${exit_code}`}.`,
    null,
    lines,
  )
}

/** Adds up what `find` prints: kind, size and path, with a zero byte behind each. */
function createCounter() {
  let rest = Buffer.alloc(0)
  /** File names are anything, `__proto__` as well. */
  const counts = new Map<string, number>()
  let objects = 0
  let all_bytes = 0
  const add = (line: string) => {
    const [, kind, size = '0', path = ''] = /^(.) (\d+) ([^]*)$/.exec(line) ?? []
    const bytes = kind === 'f' ? Number(size) : 0
    objects += 1
    all_bytes += bytes
    const name = path.split('/')[0]!.slice(0, 255)
    const before = counts.get(name)
    if (before !== undefined || counts.size < MOST_COUNTS) counts.set(name, (before ?? 0) + bytes)
  }
  return {
    take(chunk: Buffer): void {
      rest = Buffer.concat([rest, chunk])
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        add(rest.toString('utf8', 0, end))
        rest = rest.subarray(end + 1)
      }
    },
    result: (): FileCounts => ({ objects, bytes: all_bytes, counts: Object.fromEntries(counts) }),
  }
}
