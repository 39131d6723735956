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

/** Budgets that are remembered before those are forgotten of which nothing was used. */
const REMEMBERED = 1_000

/**
 * The budgets of many, by key. In memory: after a restart everybody has a whole one again, which does no harm.
 */
export function createBudgets(clock: Pick<Clock, 'monotonic_ms'>) {
  const budgets = new Map<string, Budget>()
  return (key: string, allowance: Allowance): Budget => {
    const known = budgets.get(key)
    if (known) return known
    if (budgets.size >= REMEMBERED)
      for (const [other, budget] of budgets) if (budget.isWhole()) budgets.delete(other)
    const made = createBudget(clock, allowance)
    budgets.set(key, made)
    return made
  }
}
