import { workedOfThread } from '#server/kernel/stalls'

/** How often it is looked what the main thread did. Longer than what a start does after its last line. */
export const LOOK_MS = 2000

/** What tells the share of the time since its last call in which the main thread worked, 0 to 1. */
export function shareOfThread(): () => number {
  let last = workedOfThread()
  return () => {
    const now = workedOfThread()
    const share = (now - last) / LOOK_MS
    last = now
    return share
  }
}
