import { setImmediate } from 'node:timers/promises'

/**
 * Does pieces of work one after another and lets everything else come between them. A library that is loaded at
 * its first use is loaded in this way, its parts first: in one piece some take longer than anybody may wait.
 */
export async function inTurns(...pieces: (() => unknown)[]): Promise<void> {
  for (const piece of pieces) {
    await piece()
    await setImmediate()
  }
}
