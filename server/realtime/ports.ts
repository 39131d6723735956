import type { Actor } from '#server/kernel/access'
import type { Channel } from '#server/kernel/channels'
import type { Clock } from '#server/kernel/clock'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'

/** A proof of identity that ended, or a user whose rights changed. */
export type Revoked =
  | { kind: 'session' | 'api_key'; id: string; user_id: string }
  | { kind: 'user'; user_id: string }

/** What the realtime part needs from the rest of the product. */
export interface RealtimePorts {
  clock: Clock
  log: Log
  events: Pick<Events, 'after' | 'latest' | 'subscribe'>
  /** What modules declare; asked for each time, since it is complete only after the start. */
  channels(): readonly Channel[]
  /** Project of a resource; undefined when there is none of that id. */
  locate(noun: string, id: string): string | undefined
  /** The caller as they are now; throws when session, key or user have ended. */
  refresh(actor: Actor): Actor
  onRevocation(listener: (revoked: Revoked) => void): () => void
}

/** One open connection, without the types of any WebSocket library. */
export interface Peer {
  send(text: string): void
  /** Bytes that were sent but not taken by the client yet. */
  bufferedBytes(): number
  ping(): void
  /** Reads nothing more for now; what the client sends on waits with the client. */
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  /** Ends the connection without a farewell that nobody would read. */
  terminate(): void
}

/** What the server sends. */
export interface Outgoing {
  /** Kind of an event (`deployment.step`), `log`, `output`, `exit`, or `subscribed`, `unsubscribed`, `error`, `pong`. */
  type: string
  channel: string | null
  /** Give it back as `after` to go on from here; null where there is nothing to go on from. */
  cursor: string | null
  data: unknown
}
