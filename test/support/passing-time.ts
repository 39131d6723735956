import { vi } from 'vitest'

/**
 * Lets faked time pass until this has settled. Timers that anything else in the process sets again and again, which
 * `runAllTimers` would run without an end, do not matter.
 */
export async function whileTimePasses<T>(work: Promise<T>): Promise<T> {
  let is_settled = false
  const settle = () => {
    is_settled = true
  }
  work.then(settle, settle)
  while (!is_settled) await vi.advanceTimersByTimeAsync(1_000)
  return work
}
