import { getHeapStatistics } from 'node:v8'
import type { Log } from '#server/kernel/log'
import { LOOK_MS, shareOfThread } from '#server/start/thread-share'

/** Share of the time that the main thread worked, below which nobody is there to wait for a cleaning. */
const QUIET = 0.05
/** For less than this a cleaning is not worth its 25 ms. */
const WORTH_BYTES = 2 * 2 ** 20
/** After this a heap may be cleaned up again, or after so much work of the main thread, which leaves more behind. */
const PAUSE_MS = 5 * 60_000
const PAUSE_WORK_MS = 30_000

/** Node has this when it was started with `--expose-gc`. It flushes what can be made again, and gives pages back. */
const cleanHeap = (): void => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })

interface Options {
  log: Log
  clean?: () => void
  /** Bytes of the heap that are used, garbage among them. */
  used?: () => number
  /** Share of the time since the last call in which the main thread worked, 0 to 1. */
  worked?: () => number
}

/**
 * Cleans the heap up in quiet moments: what a start or a busy time left would lie in memory until the heap has grown
 * by half, which takes a server that idles hours.
 * @returns a function that ends the watch.
 */
export function cleanWhenQuiet(options: Options): () => void {
  const { log, clean = cleanHeap, worked = shareOfThread() } = options
  const used = options.used ?? (() => getHeapStatistics().used_heap_size)
  let left = 0
  let pause_ms = 0
  let pause_work_ms = 0
  const timer = setInterval(() => {
    const share = worked()
    pause_ms -= LOOK_MS
    pause_work_ms -= share * LOOK_MS
    const before = used()
    if (share >= QUIET || (pause_ms > 0 && pause_work_ms > 0) || before - left < WORTH_BYTES) return
    clean()
    left = used()
    pause_ms = PAUSE_MS
    pause_work_ms = PAUSE_WORK_MS
    log.debug('Memory was cleaned up in a quiet moment', { freed_bytes: before - left })
  }, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
