import { childrenOf, killProcess, ownMemory, workOf } from './engine-process.ts'

/** A program that the engine has started to unpack a layer or an archive. */
export interface Unpacker {
  pid: number
  bytes: number
  /** Another text whenever it did something. */
  work: string
}
export interface UnpackersOptions {
  total_bytes: number
  log(message: string): void
  /** Milliseconds of a clock that never goes back. */
  now(): number
  /** Default: what the system has. */
  list?(engine: number): Promise<Unpacker[]>
  end?(pid: number): void
}

const MIB = 1024 ** 2
/** The strongest usual compression of `xz` takes 65 MiB to unpack, and what writes an archive 64 MiB. */
const MOST_BYTES = 256 * MIB
const UNPACKS = /^(?:\/\S*\/)?(?:xz|unxz|pigz|unpigz|zstd|unzstd|docker-untar|docker-applyLayer)\0/

/** So long without doing anything: old engines forget the program that told them what an archive is. */
const IDLE_MS = 300_000

/** Those that a process has started, and what they have for themselves in memory. */
export async function unpackersOf(engine: number): Promise<Unpacker[]> {
  const programs = (await childrenOf(engine)).filter(({ command }) => UNPACKS.test(command))
  return Promise.all(
    programs.map(async ({ pid }) => ({ pid, bytes: (await ownMemory(pid)) ?? 0, work: await workOf(pid) })),
  )
}

/**
 * Which of them take too much: each for itself, or the largest of those that are more together than a part of the
 * machine. Whoever made an archive says how much memory unpacking it takes, and no limit of a build counts there.
 */
export function tooLarge(unpackers: readonly Unpacker[], total_bytes: number): Unpacker[] {
  const most = Math.max(MOST_BYTES, total_bytes / 16)
  let sum = unpackers.reduce((all, { bytes }) => all + bytes, 0)
  return [...unpackers]
    .sort((a, b) => b.bytes - a.bytes)
    .filter(({ bytes }) => {
      const is_large = bytes > MOST_BYTES || sum > most
      if (is_large) sum -= bytes
      return is_large
    })
}

/** Ends programs that the engine has started to unpack what strangers made, and that take too much or do nothing. */
export function createUnpackers({
  total_bytes,
  log,
  now,
  list = unpackersOf,
  end = killProcess,
}: UnpackersOptions) {
  let known = new Map<number, { work: string; since: number }>()
  return {
    /** Looks once; answers whether there are any. */
    async look(engine: number): Promise<boolean> {
      const all = await list(engine)
      const before = known
      known = new Map(
        all.map(({ pid, work }) => {
          const one = before.get(pid)
          return [pid, one?.work === work ? one : { work, since: now() }]
        }),
      )
      const large = tooLarge(all, total_bytes)
      if (large.length > 0)
        log(`Archives took too much memory to be unpacked: ${large.length} programs were ended.`)
      const idle = all.filter(({ pid }) => now() - known.get(pid)!.since >= IDLE_MS)
      for (const { pid } of new Set([...large, ...idle])) end(pid)
      return all.length > 0
    },
  }
}
