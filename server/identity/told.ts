import type { Events } from '#server/kernel/events'

/**
 * Tells of people and of what they prove themselves with; call it in the transaction of the change. Members are
 * the administrators' business, sessions and keys their owner's alone: the channel `account` has them.
 */
export function createTold(events: Pick<Events, 'append'>) {
  return {
    session: (what: 'created' | 'ended', user_id: string, id: string): void =>
      events.append({ type: `session.${what}`, payload: { id, user_id } }),
    apiKey: (what: 'created' | 'revoked', user_id: string, id: string): void =>
      events.append({ type: `api_key.${what}`, payload: { id, user_id } }),
    /** An invitation is a member to be: it has an id, and no user yet. */
    invitation: (what: 'invited' | 'invitation_revoked', id: string): void =>
      events.append({ type: `member.${what}`, payload: { id } }),
    member: (what: 'joined' | 'logged_in' | 'updated' | 'removed', user_id: string): void =>
      events.append({ type: `member.${what}`, payload: { id: user_id, user_id } }),
  }
}
export type Told = ReturnType<typeof createTold>
