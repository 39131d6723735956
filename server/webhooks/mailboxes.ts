import { type Actor, isAdministrator } from '#server/kernel/access'
import { type Allowance, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import { ApiError, invalid } from '#server/kernel/errors'
import { findNotifier } from './notifiers/notifiers.ts'
import type { WebhookRow } from './repository.ts'

const HOUR_S = 3600
/** Messages that one address gets of one project within an hour. */
const MESSAGES: Allowance = { at_once: 60, per_second: 60 / HOUR_S }
/** Of all webhooks that one user made, in however many projects: whoever is made a member of a hundred is not asked. */
const OF_AUTHOR: Allowance = { at_once: 180, per_second: 180 / HOUR_S }
/** Test messages that one user sends within an hour, to whatever addresses. */
const TESTS: Allowance = { at_once: 10, per_second: 10 / HOUR_S }

type Mailbox = Pick<WebhookRow, 'provider' | 'project_id' | 'target' | 'created_by'>

/** What keeps the mail server of the installation from being used to write to anybody, as often as one likes. */
export function createMailboxes({
  clock,
  isMember,
}: {
  clock: Pick<Clock, 'monotonic_ms'>
  /** Whether an address is that of somebody who can act in a project. */
  isMember(project_id: string, email: string): boolean
}) {
  const budgetOf = createBudgets(clock)
  const takesMail = (provider: string | null) => findNotifier(provider ?? '')?.is_mail === true
  /** Of one project, so that the noise of one does not keep the alerts of another from the same person. */
  const sharesOf = ({ project_id, target, created_by }: Mailbox) => [
    budgetOf(`${project_id} ${target!.toLowerCase()}`, MESSAGES),
    budgetOf(`by ${created_by} ${target!.toLowerCase()}`, OF_AUTHOR),
  ]

  return {
    /** Throws 422 for an address that this caller may not have mail sent to. */
    requireRecipient(actor: Actor, { provider, project_id, target }: Mailbox): void {
      if (!takesMail(provider) || isAdministrator(actor)) return
      const address = target!.toLowerCase()
      if (address !== actor.email.toLowerCase() && !isMember(project_id, address))
        throw invalid(
          'config.to',
          'must be the address of a member of the project. Add its owner as a member, or ask an administrator to enter another one.',
        )
    },
    /** Takes one test message out of what a user may send; throws 429 when nothing is left. */
    takeTest(actor: Actor, { provider }: Mailbox): void {
      if (!takesMail(provider)) return
      const budget = budgetOf(`test ${actor.user_id}`, TESTS)
      if (!budget.isLeft())
        throw new ApiError(
          'RATE_LIMITED',
          `You sent ${TESTS.at_once} test messages by mail within an hour. Wait some minutes, then try again.`,
          undefined,
          Math.ceil(1 / TESTS.per_second),
        )
      budget.spend(1)
    },
    /** Why an address gets no more now; undefined while it does. */
    refusal(hook: Mailbox): { ignored: string } | undefined {
      if (!takesMail(hook.provider)) return undefined
      const [of_project, of_author] = sharesOf(hook).map((share) => share.isLeft())
      if (of_project && of_author) return undefined
      const most = of_project
        ? `${OF_AUTHOR.at_once} messages of webhooks of the same user`
        : `${MESSAGES.at_once} messages of this project`
      return {
        ignored: `The address got ${most} within an hour, so this one was not sent. Ask for fewer events, or send it again later.`,
      }
    },
    /** Counts a message that went out. */
    sent(hook: Mailbox): void {
      if (takesMail(hook.provider)) for (const share of sharesOf(hook)) share.spend(1)
    },
  }
}
export type Mailboxes = ReturnType<typeof createMailboxes>
