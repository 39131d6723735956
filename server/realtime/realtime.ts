import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import { authorizeChannel, parseChannel } from './channels.ts'
import type { Outgoing, Peer, RealtimePorts, Revoked } from './ports.ts'
import { createSubscription, isCursor, type Subscription } from './subscription.ts'

export type { Peer } from './ports.ts'

/** Every open WebSocket and what it listens to. */
export interface Realtime {
  /** Whether one more connection of this user is accepted. */
  admits(user_id: string): boolean
  open(peer: Peer, actor: Actor): void
  message(peer: Peer, text: string): void
  /** The client answered a ping. */
  alive(peer: Peer): void
  close(peer: Peer): void
  /** Connections that are open. */
  readonly size: number
  /** Heartbeats, slow connections and rights; called every second. */
  tick(): void
  /** Ends every connection: the process is about to end. */
  stop(): void
}

interface Connection {
  peer: Peer
  actor: Actor
  subscriptions: Map<string, Subscription>
  /** Start of the current ten seconds, and messages in it. */
  window: { since_ms: number; messages: number }
  heard_ms: number
  pinged_ms: number
  checked_ms: number
  /** Since when the client has not taken what was sent. */
  full_since_ms: number | undefined
}

/** Source: security.md 2.16. */
export const MAX_MESSAGE_BYTES = 64 * 1024
const MAX_SUBSCRIPTIONS = 100
const MAX_LOG_SUBSCRIPTIONS = 10
const LOGS = new Set<string>(['runtime_log', 'access_log'])
const MAX_PER_USER = 50
const MAX_CONNECTIONS = 2000
const WINDOW_MS = 10_000
const MAX_MESSAGES_PER_WINDOW = 300
/** A connection that holds more than this is full: nothing more is put into it. */
const FULL_BYTES = 1024 * 1024
const FULL_FOR_MS = 60_000
const PING_MS = 30_000
const SILENT_MS = 75_000
const CHECK_MS = 60_000

/** Codes of a closing connection; 44xx follow the HTTP status of the same meaning. */
export const CLOSE = {
  going_away: 1001,
  policy: 1008,
  too_large: 1009,
  unauthorized: 4401,
  too_slow: 4408,
} as const

const Incoming = v.variant('type', [
  v.strictObject({
    type: v.literal('subscribe'),
    channel: v.pipe(v.string(), v.maxLength(200)),
    after: v.optional(
      v.union([v.pipe(v.string(), v.maxLength(64)), v.pipe(v.number(), v.integer(), v.minValue(0))]),
    ),
  }),
  v.strictObject({ type: v.literal('unsubscribe'), channel: v.pipe(v.string(), v.maxLength(200)) }),
  v.strictObject({ type: v.literal('ping') }),
])
type Incoming = v.InferOutput<typeof Incoming>

function read(text: string): Incoming | undefined {
  try {
    const parsed = v.safeParse(Incoming, JSON.parse(text))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  }
}

/** Creates the hub. It knows connections as `Peer`s, so that tests need no socket. */
export function createRealtime(ports: RealtimePorts): Realtime {
  const { clock } = ports
  const connections = new Map<Peer, Connection>()

  const tell = ({ peer }: Connection, message: Outgoing) => peer.send(JSON.stringify(message))
  const refuse = (connection: Connection, channel: string | null, code: string, message: string) =>
    tell(connection, { type: 'error', channel, cursor: null, data: { code, message } })
  const drop = (connection: Connection, name: string) => {
    connection.subscriptions.get(name)?.stop()
    connection.subscriptions.delete(name)
  }
  const forget = (connection: Connection) => {
    for (const name of [...connection.subscriptions.keys()]) drop(connection, name)
    connections.delete(connection.peer)
  }
  const end = (connection: Connection, code: number, reason: string) => {
    forget(connection)
    connection.peer.close(code, reason)
  }
  /** Puts a message into the connection unless it is full. */
  const offer = (connection: Connection, message: Outgoing): boolean => {
    if (connection.peer.bufferedBytes() > FULL_BYTES) {
      connection.full_since_ms ??= clock.monotonic_ms()
      return false
    }
    tell(connection, message)
    return true
  }

  const subscribe = (connection: Connection, name: string, after: string | number | undefined) => {
    const channel = parseChannel(name)
    if (!channel) return refuse(connection, name, 'NOT_FOUND', 'There is no such channel.')
    try {
      authorizeChannel(channel, connection.actor, ports)
    } catch (error) {
      if (error instanceof ApiError) return refuse(connection, name, error.code, error.message)
      throw error
    }
    drop(connection, name)
    const logs = [...connection.subscriptions.values()].filter((one) => LOGS.has(one.channel.kind)).length
    if (
      connection.subscriptions.size >= MAX_SUBSCRIPTIONS ||
      (LOGS.has(channel.kind) && logs >= MAX_LOG_SUBSCRIPTIONS)
    ) {
      return refuse(
        connection,
        name,
        'RATE_LIMITED',
        `A connection may have ${MAX_SUBSCRIPTIONS} channels, ${MAX_LOG_SUBSCRIPTIONS} of them logs of apps. Unsubscribe from one first.`,
      )
    }
    if (after !== undefined && !isCursor(channel, String(after)))
      return refuse(
        connection,
        name,
        'BAD_REQUEST',
        'after: must be the cursor of an earlier message of this channel.',
      )
    const subscription = createSubscription(
      ports,
      channel,
      after === undefined ? undefined : String(after),
      (message) => offer(connection, { ...message, channel: name }),
    )
    connection.subscriptions.set(name, subscription)
    subscription.pump()
  }

  const act = (connection: Connection, message: Incoming) => {
    if (message.type === 'ping')
      return tell(connection, { type: 'pong', channel: null, cursor: null, data: {} })
    if (message.type === 'subscribe') return subscribe(connection, message.channel, message.after)
    drop(connection, message.channel)
    tell(connection, { type: 'unsubscribed', channel: message.channel, cursor: null, data: {} })
  }

  /** Asks again who this is and what they may hear. */
  const check = (connection: Connection) => {
    connection.checked_ms = clock.monotonic_ms()
    try {
      connection.actor = ports.refresh(connection.actor)
    } catch {
      return end(connection, CLOSE.unauthorized, 'The session, key or user has ended.')
    }
    for (const [name, { channel }] of [...connection.subscriptions]) {
      try {
        authorizeChannel(channel, connection.actor, ports)
      } catch (error) {
        drop(connection, name)
        const { code, message } =
          error instanceof ApiError
            ? error
            : { code: 'INTERNAL_ERROR', message: 'The right to this channel cannot be checked.' }
        refuse(connection, name, code, message)
      }
    }
  }

  const stopHearing = ports.onRevocation((revoked: Revoked) => {
    for (const connection of [...connections.values()]) {
      const { user_id, credential_id } = connection.actor
      if (revoked.kind === 'user' ? revoked.user_id === user_id : revoked.id === credential_id)
        check(connection)
    }
  })

  const keepUp = (connection: Connection, now: number) => {
    const { peer } = connection
    if (now - connection.heard_ms > SILENT_MS) {
      forget(connection)
      return peer.terminate()
    }
    if (now - connection.pinged_ms >= PING_MS) {
      connection.pinged_ms = now
      peer.ping()
    }
    if (now - connection.checked_ms >= CHECK_MS) check(connection)
    if (connection.full_since_ms === undefined) return
    if (peer.bufferedBytes() <= FULL_BYTES) {
      connection.full_since_ms = undefined
      for (const subscription of connection.subscriptions.values()) subscription.pump()
    } else if (now - connection.full_since_ms > FULL_FOR_MS)
      end(
        connection,
        CLOSE.too_slow,
        'The connection is too slow. Connect again and go on from the last cursor.',
      )
  }

  return {
    get size() {
      return connections.size
    },
    admits: (user_id) =>
      connections.size < MAX_CONNECTIONS &&
      [...connections.values()].filter((one) => one.actor.user_id === user_id).length < MAX_PER_USER,
    open(peer, actor) {
      const now = clock.monotonic_ms()
      connections.set(peer, {
        peer,
        actor,
        subscriptions: new Map(),
        window: { since_ms: now, messages: 0 },
        heard_ms: now,
        pinged_ms: now,
        checked_ms: now,
        full_since_ms: undefined,
      })
    },
    message(peer, text) {
      const connection = connections.get(peer)
      if (!connection) return
      const now = clock.monotonic_ms()
      connection.heard_ms = now
      if (now - connection.window.since_ms >= WINDOW_MS) connection.window = { since_ms: now, messages: 0 }
      connection.window.messages += 1
      if (connection.window.messages > MAX_MESSAGES_PER_WINDOW)
        return end(connection, CLOSE.policy, 'Too many messages.')
      if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES)
        return end(connection, CLOSE.too_large, 'The message is too large.')
      const message = read(text)
      if (!message)
        return refuse(
          connection,
          null,
          'BAD_REQUEST',
          'Send {"type":"subscribe","channel":"…"}, {"type":"unsubscribe","channel":"…"} or {"type":"ping"}.',
        )
      try {
        act(connection, message)
      } catch (error) {
        ports.log.error('A message of a WebSocket failed', { error })
        refuse(connection, null, 'INTERNAL_ERROR', 'Something went wrong on the server.')
      }
    },
    alive(peer) {
      const connection = connections.get(peer)
      if (connection) connection.heard_ms = clock.monotonic_ms()
    },
    close(peer) {
      const connection = connections.get(peer)
      if (connection) forget(connection)
    },
    tick() {
      const now = clock.monotonic_ms()
      for (const connection of [...connections.values()]) keepUp(connection, now)
    },
    stop() {
      stopHearing()
      for (const connection of [...connections.values()])
        end(
          connection,
          CLOSE.going_away,
          'The server restarts. Connect again and go on from the last cursor.',
        )
    },
  }
}
