import { createBudget, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'

const MIB = 1024 * 1024
/** Bytes that all instances together may print: what they print is masked and written by the one main thread. */
const OF_ALL = { at_once: 64 * MIB, per_second: 8 * MIB }
/** Bytes of the instances of one project that are taken whatever others print. */
const OF_PROJECT = { at_once: 16 * MIB, per_second: 256 * 1024 }

/**
 * What instances may print together: fifty that print as fast as they can, of one project or of many, would keep the
 * process busy with nothing else. Lines beyond it come later, or are left out where their instance falls behind.
 */
export function createPrintShares(clock: Pick<Clock, 'monotonic_ms'>) {
  const own = createBudgets(clock)
  const all = createBudget(clock, OF_ALL)
  return {
    isLeft: (project_id: string): boolean => own(project_id, OF_PROJECT).isLeft() || all.isLeft(),
    spend(project_id: string, bytes: number): void {
      const share = own(project_id, OF_PROJECT)
      if (share.isLeft()) share.spend(bytes)
      else all.spend(bytes)
    },
  }
}
export type PrintShares = ReturnType<typeof createPrintShares>
