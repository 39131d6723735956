import { totalmem } from 'node:os'
import type { WatchedRoom } from '#server/kernel/watched-room'
import type { EgressFilter } from './egress.ts'
import { type EngineProcess, type findEngine, followEngine, ownMemory } from './engine-process.ts'
import { createUnpackers } from './engine-unpackers.ts'

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
/** How often programs that unpack are looked at while nothing is under way. */
const CALM_MS = 10_000

const ownMemoryOf = (engine: EngineProcess | undefined) => (engine ? ownMemory(engine.pid) : undefined)

/** An engine that takes too much within a minute has all its connections reset, and what made it fetch is ended. */
export function createEngineMemory(options: EngineMemoryOptions): EngineMemory {
  const now = options.now ?? (() => performance.now())
  let begun = 0
  const engineNow = followEngine({ ...options, now, begun: () => begun })
  const read = options.read ?? (async () => ownMemoryOf(await engineNow()))
  const total_bytes = options.total_bytes ?? totalmem()
  const growth_bytes = Math.min(
    MOST_BYTES,
    Math.max(Math.min(FLOOD_BYTES, total_bytes / 4), total_bytes / 16),
  )
  const working = new Set<AbortController>()
  let samples: { at: number; bytes: number }[] = []
  let cut_since: number | undefined
  const unpackers = createUnpackers({ total_bytes, log: options.log, now })
  let unpackers_at = -Infinity
  let unpacks_until = -Infinity

  /** Slow growth ends at a quarter of the machine. */
  function isTooMuch(bytes: number): boolean {
    const grown = bytes - Math.min(...samples.map((sample) => sample.bytes))
    return grown >= growth_bytes || (bytes >= total_bytes / 4 && grown >= LEAST_BYTES)
  }

  /** What unpacks goes on when nobody waits for it any more. */
  async function lookAtUnpackers(): Promise<void> {
    if (working.size > 0) unpacks_until = now() + WINDOW_MS
    if (now() > unpacks_until && now() < unpackers_at) return
    const engine = await engineNow()
    const are_there = engine !== undefined && (await unpackers.look(engine.pid))
    unpackers_at = now() + (are_there ? CALM_MS : WINDOW_MS)
  }

  return {
    async look() {
      const bytes = await read()
      await lookAtUnpackers()
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
