import type { Access, Actor } from './access.ts'
import type { EventFilter } from './events.ts'

/** One line of a log that is kept; `seq` counts within its log from 1. */
export interface ChannelLine {
  seq: number
}
/** A log that is kept, can be read from any line on, and tells what is new at once. */
export interface ChannelLog {
  /** Number of the newest line; 0 before the first. */
  latest(id: string): number
  /**
   * Lines after a number, oldest first, at most `limit` and no more than may be worked on in one piece; none means
   * that there are no more.
   */
  after(id: string, seq: number, limit: number): ChannelLine[]
  subscribe(id: string, listener: (line: ChannelLine) => void): () => void
}

/** What a client sends on the channel of a session once it is open. */
export type SessionInput = { type: 'input'; text: string } | { type: 'resize'; cols: number; rows: number }
/** Why a session ended on the client's side. */
export type SessionEnd = 'closed' | 'connection_lost' | 'revoked' | 'server_stopping'

/** Something that is open for one connection and takes input from it, e.g. a terminal. */
export interface ChannelSession {
  /** Throws an `ApiError` for input that cannot be taken. */
  receive(input: SessionInput): void
  /**
   * Sends what is due. Answers `blocked` when the connection took nothing; it is called again once there is
   * room.
   */
  step(): 'blocked' | 'done'
  end(reason: SessionEnd): void
}
/** The connection of a session. */
export interface SessionOutlet {
  /** Sends a message of the channel; false when the connection is full or has had enough for now. */
  send(message: { type: string; data: unknown }): boolean
  /** There is something to send: `step` is due. */
  due(): void
  /** Sends the last message and closes the channel. */
  finish(message: { type: string; data: unknown }): void
}

interface AnyChannel {
  /** `apps/:id/logs`; `:id` stands for the id of the noun. */
  name: string
  /** What the channel is about; without one it is about the installation. */
  noun?: string
  /** For a channel with an id and without a noun: whether the installation has that. */
  exists?(id: string): boolean
  /** Least right to it; the default is `viewer`. Keys that may only read may not open a session. */
  access?: Access
}
/** What happened to a resource. */
export interface EventChannel extends AnyChannel {
  kind: 'events'
  events(id: string, actor: Actor): EventFilter
  /** Lines that belong to it; its cursor is then `<event>.<line>`. */
  log?: ChannelLog
}
/** Lines of a log that is kept. */
export interface LogChannel extends AnyChannel {
  kind: 'log'
  log: ChannelLog
}
/** Something that each subscription opens for itself. */
export interface SessionChannel extends AnyChannel {
  kind: 'session'
  /** Throws an `ApiError` when it cannot be opened. `options` is the `data` of the subscription. */
  open(
    about: { id: string; project_id: string },
    actor: Actor,
    options: unknown,
    outlet: SessionOutlet,
  ): ChannelSession
}

/** A channel of the WebSocket as its domain declares it. */
export type Channel = EventChannel | LogChannel | SessionChannel
