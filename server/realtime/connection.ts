import type { Actor } from '#server/kernel/access'
import type { PlatformEvent } from '#server/kernel/events'
import type { OpenChannel } from './channels.ts'
import type { Inbox } from './inbox.ts'
import type { Incoming } from './incoming.ts'
import {
  LOGS,
  MAX_INPUTS_PER_WINDOW,
  MAX_LOG_SUBSCRIPTIONS,
  MAX_MESSAGES_PER_WINDOW,
  MAX_SUBSCRIPTIONS,
  MAX_USER_LOGS,
  MAX_USER_SUBSCRIPTIONS,
  WINDOW_MS,
} from './limits.ts'
import type { Peer, RealtimePorts } from './ports.ts'
import type { Share, User } from './shares.ts'
import type { Subscription } from './outlet.ts'

/** One open WebSocket, who it belongs to and what it listens to. */
export interface Connection {
  peer: Peer
  actor: Actor
  user: User
  share: Share
  subscriptions: Map<string, Subscription>
  /** Subscriptions that are logs of apps. */
  logs: number
  /** Start of the current ten seconds, and messages in it; those to sessions apart. */
  window: { since_ms: number; messages: number; inputs: number }
  heard_ms: number
  /** Since when there is more to come of a message that has begun. */
  open_since_ms: number | undefined
  pinged_ms: number
  checked_ms: number
  /** Since when the client has not taken what was sent. */
  full_since_ms: number | undefined
  /** Since when it has been told to go. It holds its place until it has gone. */
  ended_ms: number | undefined
  /** Nothing is read of it until its user has something left. */
  is_held: boolean
  /** What it said that was not acted on yet. */
  inbox: Inbox
}

export const newConnection = (
  peer: Peer,
  actor: Actor,
  shares: Pick<Connection, 'user' | 'share'>,
  now: number,
): Omit<Connection, 'inbox'> => ({
  peer,
  actor,
  ...shares,
  subscriptions: new Map(),
  logs: 0,
  window: { since_ms: now, messages: 0, inputs: 0 },
  heard_ms: now,
  open_since_ms: undefined,
  pinged_ms: now,
  checked_ms: now,
  full_since_ms: undefined,
  ended_ms: undefined,
  is_held: false,
})

/** Why a connection may not have one more channel of this kind. */
export const excess = (
  { subscriptions, logs, user }: Connection,
  { of }: OpenChannel,
): string | undefined => {
  const is_log = LOGS.has(of.kind)
  if (subscriptions.size >= MAX_SUBSCRIPTIONS || (is_log && logs >= MAX_LOG_SUBSCRIPTIONS))
    return `A connection may have ${MAX_SUBSCRIPTIONS} channels, ${MAX_LOG_SUBSCRIPTIONS} of them logs of apps. Unsubscribe from one first.`
  if (user.subscriptions >= MAX_USER_SUBSCRIPTIONS || (is_log && user.logs >= MAX_USER_LOGS))
    return `A user may have ${MAX_USER_SUBSCRIPTIONS} channels over all connections, ${MAX_USER_LOGS} of them logs of apps. Unsubscribe from one first.`
  if (!user.starts.isLeft()) return 'Too many channels in a short time. Wait a few seconds, then try again.'
  return undefined
}
/** Whether a connection listens to an app that has just come to a project, or to something that came with it. */
export const followsApp = (
  { subscriptions }: Connection,
  { app_id, project_id }: Pick<PlatformEvent, 'app_id' | 'project_id'>,
  { locate }: Pick<RealtimePorts, 'locate'>,
): boolean =>
  [...subscriptions.values()].some(({ channel: { of, id } }) =>
    of.noun === 'app' ? id === app_id : of.noun !== undefined && locate(of.noun, id) === project_id,
  )

/** Counts a message; false when it is one too many. */
export const isWithinLimits = (
  connection: Connection,
  message: Incoming | undefined,
  now: number,
): boolean => {
  if (now - connection.window.since_ms >= WINDOW_MS)
    connection.window = { since_ms: now, messages: 0, inputs: 0 }
  const { window, user, subscriptions } = connection
  if (message?.type === 'input' && subscriptions.get(message.channel)?.receive)
    return ++window.inputs <= MAX_INPUTS_PER_WINDOW
  user.messages.spend(1)
  return ++window.messages <= MAX_MESSAGES_PER_WINDOW && user.messages.isLeft()
}
