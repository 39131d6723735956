import { type Actor, isAdministrator } from '#server/kernel/access'
import { type Allowance, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'
import { KEPT_FOR_FIRST, MAX_PER_PROJECT, MAX_PER_USER, MAX_TERMINALS } from './limits.ts'

/** Terminals that one user begins: each is two processes in a container and two lines of the audit trail. */
const BEGUN: Allowance = { at_once: 60, per_second: 0.5 }

/** Who holds a terminal, and where. */
export interface Holder {
  user_id: string
  project_id: string
}

/** What keeps the terminals of one user, or of one project, from taking those of everybody. */
export function createPlaces(clock: Pick<Clock, 'monotonic_ms'>) {
  const budgetOf = createBudgets(clock)

  /** Why no further terminal may be opened beside those that are; undefined when one may. */
  function refusal(actor: Actor, project_id: string, held: readonly Holder[]): string | undefined {
    const own = held.filter(({ user_id }) => user_id === actor.user_id).length
    if (own >= MAX_PER_USER) return `You have ${MAX_PER_USER} terminals open. Close one first.`
    if (held.filter((one) => one.project_id === project_id).length >= MAX_PER_PROJECT)
      return `The project has ${MAX_PER_PROJECT} terminals open. Close one first.`
    const free = MAX_TERMINALS - held.length - (own > 0 ? KEPT_FOR_FIRST : 0)
    return free > 0 ? undefined : 'The server has no place for a further terminal. Close one first.'
  }

  return {
    /** Takes a place for a terminal; throws RATE_LIMITED when there is none. */
    take(actor: Actor, project_id: string, held: readonly Holder[]): void {
      const reason = refusal(actor, project_id, held)
      if (reason !== undefined) throw new ApiError('RATE_LIMITED', reason)
      if (isAdministrator(actor)) return
      const begun = budgetOf(actor.user_id, BEGUN)
      if (!begun.isLeft())
        throw new ApiError('RATE_LIMITED', 'Too many terminals in a short time. Wait a few seconds.')
      begun.spend(1)
    },
  }
}
