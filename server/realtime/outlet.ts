import type { Actor } from '#server/kernel/access'
import type { SessionEnd, SessionInput } from '#server/kernel/channels'
import type { OpenChannel } from './channels.ts'
import type { Outgoing } from './ports.ts'
import type { Task } from './turns.ts'

/** What a connection gets of one channel. */
export interface Subscription extends Task {
  readonly channel: OpenChannel
  /** Cursor of what was sent last. */
  cursor(): string | null
  /** What the client sends on the channel; only sessions take any. */
  receive?(input: SessionInput): void
  stop(reason: SessionEnd): void
}
/** The connection of a subscription. */
export interface Outlet {
  /** Sends a message of the channel; false when the connection is full or has had enough for now. */
  send(message: Omit<Outgoing, 'channel'>): boolean
  /** Whether it would take a message now. */
  hasRoom(): boolean
  /** There is something to do again: steps are due. */
  due(): void
  /** Sends the last message of the channel and closes it. */
  finish(message: Omit<Outgoing, 'channel'>): void
}
/** What somebody wants of a channel. */
export interface Wish {
  /** Who they are by now: roles and projects change while a channel is open. */
  actor(): Actor
  project_id: string
  /** Cursor to go on from. */
  after: string | undefined
  /** What a session is opened with. */
  options: unknown
}
