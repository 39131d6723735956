import type { SessionChannel } from '#server/kernel/channels'
import type { OpenChannel } from './channels.ts'
import type { Outlet, Subscription, Wish } from './outlet.ts'

/** Opens a session for one connection. It has no cursor: what was missed while nobody was there is gone. */
export function openSession(
  channel: OpenChannel,
  of: SessionChannel,
  { actor, project_id, options }: Wish,
  outlet: Outlet,
): Subscription {
  const session = of.open({ id: channel.id, project_id }, actor(), options, {
    send: (message) => outlet.send({ ...message, cursor: null }),
    due: outlet.due,
    finish: (message) => outlet.finish({ ...message, cursor: null }),
  })
  outlet.send({ type: 'subscribed', cursor: null, data: {} })
  return {
    channel,
    cursor: () => null,
    step: () => session.step(),
    receive: (input) => session.receive(input),
    stop: (reason) => session.end(reason),
  }
}
