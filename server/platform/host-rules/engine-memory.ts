import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import type { WatchedRoom } from '#server/kernel/watched-room'
import type { EgressFilter } from './egress.ts'
import { type findEngine, type FollowOptions, followEngine } from './engine-process.ts'

/**
 * Keeps what strangers send to the engine from taking the memory of this machine: it reads manifests, settings of
 * images and tokens of registries as a whole, however long they are, and goes on when nobody waits for them any more.
 */
export interface EngineMemory {
  /** Looks once; several times a second, so that a fast network brings little in between. */
  look(): Promise<void>
  /** Work that makes the engine fetch: its signal aborts once the engine has taken too much. */
  watch(signal: AbortSignal): WatchedRoom
}

export interface EngineMemoryOptions {
  docker_host: string
  egress: Pick<EgressFilter, 'cutOff'>
  log(message: string): void
  /** Memory that the engine's process has for itself; undefined where that cannot be seen. */
  read?(): Promise<number | undefined>
  /** Finds the process behind a socket. Default: looks through all that there are. */
  find?: typeof findEngine
  /** Of this machine. */
  total_bytes?: number
  /** Milliseconds of a clock that never goes back. */
  now?(): number
}

const MIB = 1024 ** 2
/** What fetching takes grows within seconds; what containers need of the engine does so over days. */
const WINDOW_MS = 60_000
/** A flood of logs takes up to 250 MiB for some seconds: whoever prints must not end what others fetch. */
const FLOOD_BYTES = 512 * MIB
const MOST_BYTES = 1024 * MIB
/** So little may be anything. */
const LEAST_BYTES = 64 * MIB
/** Every connection is used within this time, and ends by that. */
const CUT_MS = 2_000

/** Reads it of the process behind a socket of this machine. */
function readerOf(options: FollowOptions): () => Promise<number | undefined> {
  const engineNow = followEngine(options)
  return async () => {
    const engine = await engineNow()
    const status = engine && (await readFile(`/proc/${engine.pid}/status`, 'utf8').catch(() => ''))
    const kib = /^RssAnon:\s+(\d+) kB$/m.exec(status ?? '')?.[1]
    return kib === undefined ? undefined : Number(kib) * 1024
  }
}

/** An engine that takes too much within a minute has all its connections reset, and what made it fetch is ended. */
export function createEngineMemory(options: EngineMemoryOptions): EngineMemory {
  const now = options.now ?? (() => performance.now())
  let begun = 0
  const read = options.read ?? readerOf({ ...options, now, begun: () => begun })
  const total_bytes = options.total_bytes ?? totalmem()
  const growth_bytes = Math.min(
    MOST_BYTES,
    Math.max(Math.min(FLOOD_BYTES, total_bytes / 4), total_bytes / 16),
  )
  const working = new Set<AbortController>()
  let samples: { at: number; bytes: number }[] = []
  let cut_since: number | undefined

  /** Slow growth ends at a quarter of the machine. */
  function isTooMuch(bytes: number): boolean {
    const grown = bytes - Math.min(...samples.map((sample) => sample.bytes))
    return grown >= growth_bytes || (bytes >= total_bytes / 4 && grown >= LEAST_BYTES)
  }

  return {
    async look() {
      const bytes = await read()
      const at = now()
      if (cut_since !== undefined && at - cut_since >= CUT_MS) {
        cut_since = undefined
        samples = []
        await options.egress.cutOff(false)
      }
      if (bytes === undefined) return
      samples = [...samples.filter((sample) => at - sample.at < WINDOW_MS), { at, bytes }]
      if (cut_since !== undefined || !isTooMuch(bytes)) return
      cut_since = at
      options.log(
        `The engine took ${Math.round(bytes / MIB)} MiB of memory for what it fetches: its connections are reset.`,
      )
      for (const work of working) work.abort()
      await options.egress.cutOff(true)
    },
    watch(signal) {
      const ending = new AbortController()
      begun += 1
      working.add(ending)
      return {
        signal: AbortSignal.any([signal, ending.signal]),
        filled: () => ending.signal.aborted && !signal.aborted,
        stop: () => void working.delete(ending),
      }
    },
  }
}
