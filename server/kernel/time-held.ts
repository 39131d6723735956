import type { Clock } from './clock.ts'

/** After so long, what was held counts half. */
const HALF_MS = 300_000
/** Below this it need not be remembered. */
const LEAST_MS = 1

/**
 * For how long each of many held places of late. Whoever holds them the longest is served last: places that are
 * taken by what hangs, of however many projects or receivers, are not those of everybody else.
 */
export function createTimeHeld(clock: Pick<Clock, 'monotonic_ms'>) {
  const held = new Map<string, { ms: number; at_ms: number }>()
  const of = (key: string): number => {
    const found = held.get(key)
    return found ? found.ms * 2 ** ((found.at_ms - clock.monotonic_ms()) / HALF_MS) : 0
  }
  return {
    /** Milliseconds, of which the newest count most. */
    of,
    add(key: string, ms: number): void {
      held.set(key, { ms: of(key) + ms, at_ms: clock.monotonic_ms() })
    },
    /** Those that held places for longer than this. */
    over: (ms: number): string[] => [...held.keys()].filter((key) => of(key) > ms),
    /** Forgets whoever held none for long; to be called now and then. */
    prune(): void {
      for (const key of held.keys()) if (of(key) < LEAST_MS) held.delete(key)
    },
  }
}
export type TimeHeld = ReturnType<typeof createTimeHeld>
