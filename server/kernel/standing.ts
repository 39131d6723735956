import { AsyncLocalStorage } from 'node:async_hooks'

/** Work that may be done as long as somebody has the right to it. */
interface Standing {
  /** Throws once the right has ended. Undefined when nobody has to be asked for it any more. */
  requireStill: (() => void) | undefined
  /** It was asked for, and nothing was waited for since. */
  is_fresh: boolean
}
const standings = new AsyncLocalStorage<Standing>()

function markFresh(standing: Standing): void {
  standing.is_fresh = true
  setImmediate(() => {
    standing.is_fresh = false
  })
}

/**
 * Does work that its caller has the right to now. What it waits for, such as the answer of a host, may take
 * longer than the right lasts: each transaction after a wait begins with `requireStill`, which throws then.
 */
export async function whileStanding<T>(requireStill: () => void, work: () => Promise<T> | T): Promise<T> {
  const standing: Standing = { requireStill, is_fresh: true }
  markFresh(standing)
  try {
    return await standings.run(standing, work)
  } finally {
    standing.requireStill = undefined
  }
}

/** Throws when what is done now is done for somebody whose right to it has ended meanwhile. */
export function requireStanding(): void {
  const standing = standings.getStore()
  if (!standing?.requireStill || standing.is_fresh) return
  const { requireStill } = standing
  // What comes after a refusal cleans up, and has to get through.
  standing.requireStill = undefined
  requireStill()
  standing.requireStill = requireStill
  markFresh(standing)
}

/** Begins work that is not its caller's own any more, such as a job that was asked for. */
export const apart = <T>(work: () => T): T => standings.exit(work)
