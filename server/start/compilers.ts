import { setFlagsFromString } from 'node:v8'
import { COMPILERS } from '#server/start/process-arguments'
import { LOOK_MS, shareOfThread } from '#server/start/thread-share'

/** Share of the time that the main thread worked, from which on a server is busy. */
const BUSY = 0.3

const useCompilers = (): void => COMPILERS.forEach((name) => setFlagsFromString(`--${name}`))

interface Options {
  use?: () => void
  /** Share of the time since the last call in which the main thread worked, 0 to 1. */
  worked?: () => number
}

/**
 * Uses the compilers from the first two busy seconds on, for good.
 * @returns a function that ends the watch.
 */
export function compileOnceBusy({ use = useCompilers, worked = shareOfThread() }: Options = {}): () => void {
  const timer = setInterval(() => {
    if (worked() < BUSY) return
    clearInterval(timer)
    use()
  }, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
