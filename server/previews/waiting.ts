import { setTimeout as pause } from 'node:timers/promises'

const PAUSE_MS = 250

/** Resolves once a row says that other work is done; rejects when the signal aborts. */
export async function until(isDone: () => boolean, signal: AbortSignal): Promise<void> {
  while (!isDone()) await pause(PAUSE_MS, undefined, { signal })
}
