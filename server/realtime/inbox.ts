import type { Incoming } from './incoming.ts'
import type { Task, Turns } from './turns.ts'

/** Time in which messages are acted on as they come, in one round of the event loop. */
const AT_ONCE_MS = 5

/** What a connection said that was not acted on yet. */
export interface Inbox extends Task {
  /** Acts on a message at once, or in its turn where many came together; in their order in any case. */
  take(message: Incoming): void
  /** Forgets what waits. */
  clear(): void
}

/**
 * Makes inboxes. Hundreds of messages of each of many connections arrive in one round of the event loop, and each may
 * be a subscription with its look-ups: what is beyond a few milliseconds waits for the turn of its user.
 */
export function createInboxes(turns: Turns, now: () => number) {
  let worked_ms = 0
  let is_counting = false
  const count = (began: number): void => {
    worked_ms += now() - began
    if (is_counting) return
    is_counting = true
    setImmediate(() => {
      worked_ms = 0
      is_counting = false
    })
  }
  return (owner: string, act: (message: Incoming) => void): Inbox => {
    let waiting: Incoming[] = []
    const inbox: Inbox = {
      take(message) {
        if (waiting.length > 0 || worked_ms >= AT_ONCE_MS) {
          waiting.push(message)
          turns.add(owner, inbox)
          return
        }
        const began = now()
        act(message)
        count(began)
      },
      step() {
        const message = waiting.shift()
        if (message) act(message)
        return waiting.length > 0 ? 'more' : 'done'
      },
      clear() {
        waiting = []
        turns.remove(owner, inbox)
      },
    }
    return inbox
  }
}
