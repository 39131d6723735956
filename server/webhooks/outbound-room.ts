import { type Allowance, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import type { WebhookRow } from './repository.ts'

/** Messages to the webhooks of one project: within a day 43,000, which is far more than anybody reads. */
const MESSAGES: Allowance = { at_once: 2_000, per_second: 0.5 }

/** Whose messages those of a webhook are; one for all projects stands for itself. */
export const payerOf = ({ id, project_id, all_projects }: WebhookRow): string =>
  all_projects === 1 ? id : project_id

/**
 * Bounds how many messages are written down to be sent. One change is a row for each webhook that asks for it, kept
 * for a month and tried for a day: with a hundred webhooks whoever changes things all the time fills the disk.
 */
export function createOutboundRoom(clock: Pick<Clock, 'monotonic_ms'>) {
  const budgetOf = createBudgets(clock)
  return {
    /** Takes one message. Alerts have a share of their own: what else happens keeps nobody from hearing of them. */
    take(hook: WebhookRow, event: string): boolean {
      const kind = event.startsWith('alert.') ? 'alerts' : 'events'
      const budget = budgetOf(`${payerOf(hook)} ${kind}`, MESSAGES)
      if (!budget.isLeft()) return false
      budget.spend(1)
      return true
    },
    /** What is said, once in an hour, in the place of messages that are left out. */
    refusal: `The webhooks of the project were to tell more than ${MESSAGES.at_once} messages, so further ones are left out for now. Ask for fewer events.`,
  }
}
