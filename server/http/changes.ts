import { type Actor, isAdministrator } from '#server/kernel/access'
import { type Allowance, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'

/**
 * Changes of one user: far more at once than anybody makes by hand, and 36,000 an hour for programs. Each adds rows
 * that are kept for months, to the trail and to events at least.
 */
const OF_USER: Allowance = { at_once: 1_000, per_second: 10 }

/**
 * Bounds how fast one user may change things: by nothing but changing their own name, over and over, somebody who may
 * only read would fill the disk of the server within hours. Administrators have the server anyway.
 */
export function createChanges(clock: Pick<Clock, 'monotonic_ms'>, allowance = OF_USER) {
  const budgetOf = createBudgets(clock)
  return {
    /**
     * Counts a change. Throws RATE_LIMITED for one too many.
     * @param is_own about the caller's own account: counted by session or key, so that whoever got hold of one keeps
     * its owner from nothing.
     */
    take(actor: Actor, is_own: boolean): void {
      if (isAdministrator(actor)) return
      const budget = budgetOf(is_own ? `${actor.user_id} ${actor.credential_id}` : actor.user_id, allowance)
      if (!budget.isLeft())
        throw new ApiError(
          'RATE_LIMITED',
          'Too many changes in a short time. Wait a few seconds, then go on.',
          undefined,
          5,
        )
      budget.spend(1)
    },
  }
}
export type Changes = ReturnType<typeof createChanges>
