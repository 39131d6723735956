import type { Actor } from '#server/kernel/access'
import { requireStanding } from '#server/kernel/standing'
import { createUserPool } from '#server/kernel/user-pool'
import type { Mailboxes } from './mailboxes.ts'
import type { WebhookRow } from './repository.ts'
import type { WebhookTest } from './schema.ts'
import { attemptRequest, type SenderOptions } from './sender.ts'
import type { Telling } from './telling.ts'

/** Each waits for its receiver for as long as that likes, up to ten seconds. */
const POOL = {
  at_once: 16,
  at_once_per_user: 4,
  waiting_per_user: 16,
  waiting: 64,
  refusal: 'Too many messages are being tested. Wait for one, then try again.',
}

/** Sends a test message to a receiver and says what came of it. */
export function createTestSends(
  tools: Pick<SenderOptions, 'client' | 'mail' | 'clock'>,
  telling: Telling,
  mailboxes: Mailboxes,
) {
  const pool = createUserPool(POOL)
  /**
   * Throws RATE_LIMITED for one too many.
   * @param find the webhook as it is when its turn has come, which may be a minute later; throws when it is gone.
   */
  return (actor: Actor, find: () => WebhookRow): Promise<WebhookTest> =>
    pool.run(actor.user_id, async () => {
      requireStanding()
      const hook = find()
      mailboxes.takeTest(actor, hook)
      const request = telling.requestFor(hook, telling.testNotice(hook))
      const { succeeded, response_status, duration_ms, detail } = await attemptRequest(request, tools)
      if (succeeded) mailboxes.sent(hook)
      return { succeeded, response_status, duration_ms, detail }
    })
}
