import type { Clock } from './clock.ts'

/** How much may be used: at once after a rest, and for each second after that. */
export interface Allowance {
  at_once: number
  per_second: number
}

/** Something that is used up and grows again with time. */
export interface Budget {
  /** Whether anything is left. */
  isLeft(): boolean
  /** Uses so much, also more than is left: what follows waits until it has grown again. */
  spend(amount: number): void
  /** Whether nothing was used for so long that it need not be remembered. */
  isWhole(): boolean
}

export function createBudget(clock: Pick<Clock, 'monotonic_ms'>, allowance: Allowance): Budget {
  let left = allowance.at_once
  let since_ms = clock.monotonic_ms()
  const grow = (): number => {
    const now = clock.monotonic_ms()
    left = Math.min(allowance.at_once, left + ((now - since_ms) / 1000) * allowance.per_second)
    since_ms = now
    return left
  }
  return {
    isLeft: () => grow() > 0,
    spend(amount) {
      grow()
      left -= amount
    },
    isWhole: () => grow() >= allowance.at_once,
  }
}
