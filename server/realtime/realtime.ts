import type { Actor } from '#server/kernel/access'
import type { SessionEnd } from '#server/kernel/channels'
import { ApiError } from '#server/kernel/errors'
import { authorizeChannel, findChannel } from './channels.ts'
import { type Connection, excess, followsApp, isWithinLimits, newConnection } from './connection.ts'
import { createInboxes } from './inbox.ts'
import { type Incoming, inputOf, readIncoming } from './incoming.ts'
import {
  CHECKS_AT_ONCE,
  CHECK_MS,
  CLOSE,
  COUNT_MS,
  CROWDED_BYTES,
  FAREWELL_MS,
  FULL_BYTES,
  FULL_BYTES_CROWDED,
  FULL_FOR_MS,
  LOGS,
  MAX_CONNECTIONS,
  MAX_FRAMES_COUNTED,
  MAX_MESSAGE_BYTES,
  PING_MS,
  SILENT_MS,
  WHOLE_MS,
} from './limits.ts'
import type { Outgoing, Peer, RealtimePorts, Revoked } from './ports.ts'
import { createShares } from './shares.ts'
import type { Outlet } from './outlet.ts'
import { createSubscription, isCursor } from './subscription.ts'
import { createTurns, type TurnsOptions } from './turns.ts'

export { CLOSE, MAX_MESSAGE_BYTES } from './limits.ts'
export type { Peer } from './ports.ts'

/** Every open WebSocket and what it listens to. */
export interface Realtime {
  /** Whether one more connection of this user is accepted. */
  admits(user_id: string): boolean
  open(peer: Peer, actor: Actor): void
  /**
   * So much arrived, before any of it is read; false when it is not to be read, since its user sent
   * far too many frames. Of a message that is open there is more to come.
   */
  received(peer: Peer, frames: number, bytes: number, is_open?: boolean): boolean
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

type Subscribe = Extract<Incoming, { type: 'subscribe' }>
const ENDS: Record<number, SessionEnd> = {
  [CLOSE.going_away]: 'server_stopping',
  [CLOSE.unauthorized]: 'revoked',
}
/** What a client is told of an error; of those that are none of its faults, no more than this. */
const told = (error: unknown, otherwise: string) =>
  error instanceof ApiError ? error : { code: 'INTERNAL_ERROR', message: otherwise }
const TOO_SLOW = 'The connection is too slow. Connect again and go on from the last cursor.'

/** Creates the hub. It knows connections as `Peer`s, so that tests need no socket. */
export function createRealtime(
  ports: RealtimePorts,
  options: TurnsOptions = { now: ports.clock.monotonic_ms },
): Realtime {
  const { clock } = ports
  const connections = new Map<Peer, Connection>()
  const shares = createShares(clock)
  const turns = createTurns(options)
  const inboxOf = createInboxes(turns, options.now)
  const held = { bytes: 0, at_ms: -COUNT_MS }

  /** Bytes that a connection may hold before it is full. */
  const fullAt = (): number => {
    if (clock.monotonic_ms() - held.at_ms >= COUNT_MS) {
      held.at_ms = clock.monotonic_ms()
      held.bytes = 0
      for (const peer of connections.keys()) held.bytes += peer.bufferedBytes()
    }
    return held.bytes > CROWDED_BYTES ? FULL_BYTES_CROWDED : FULL_BYTES
  }
  /** Sends an answer to what the client said; one who asks and asks and takes no answer is cut off. */
  const emit = (connection: Connection, message: Outgoing) => {
    if (connection.peer.bufferedBytes() > 2 * FULL_BYTES) return end(connection, CLOSE.too_slow, TOO_SLOW)
    connection.peer.send(JSON.stringify(message))
  }
  const refuse = (connection: Connection, channel: string | null, code: string, message: string) =>
    emit(connection, { type: 'error', channel, cursor: null, data: { code, message } })
  const drop = (connection: Connection, name: string, reason: SessionEnd) => {
    const subscription = connection.subscriptions.get(name)
    if (!subscription) return
    subscription.stop(reason)
    turns.remove(connection.user.id, subscription)
    connection.subscriptions.delete(name)
    const logs = LOGS.has(subscription.channel.of.kind) ? 1 : 0
    connection.logs -= logs
    connection.user.logs -= logs
    connection.user.subscriptions -= 1
  }
  const quiet = (connection: Connection, reason: SessionEnd) => {
    connection.inbox.clear()
    for (const name of [...connection.subscriptions.keys()]) drop(connection, name, reason)
  }
  const forget = (connection: Connection) => {
    quiet(connection, 'connection_lost')
    if (connections.delete(connection.peer)) connection.user.connections -= 1
  }
  function end(connection: Connection, code: number, reason: string): void {
    if (connection.ended_ms !== undefined) return
    quiet(connection, ENDS[code] ?? 'connection_lost')
    connection.ended_ms = clock.monotonic_ms()
    connection.peer.close(code, reason)
  }
  /** Whether a connection is neither full nor had enough for now. */
  const hasRoom = (connection: Connection): boolean => {
    if (connection.ended_ms !== undefined) return false
    if (connection.peer.bufferedBytes() > fullAt()) {
      connection.full_since_ms ??= clock.monotonic_ms()
      return false
    }
    return connection.share.isLeft()
  }
  /** Puts a message into the connection where there is room. */
  const offer = (connection: Connection, message: Outgoing): boolean => {
    if (!hasRoom(connection)) return false
    const text = JSON.stringify(message)
    connection.share.spend(1, text.length)
    connection.peer.send(text)
    return true
  }

  const outletOf = (connection: Connection, name: string): Outlet => ({
    send(message) {
      if (message.type === 'subscribed') {
        emit(connection, { ...message, channel: name })
        return true
      }
      return offer(connection, { ...message, channel: name })
    },
    hasRoom: () => hasRoom(connection),
    due() {
      const subscription = connection.subscriptions.get(name)
      if (subscription) turns.add(connection.user.id, subscription)
    },
    finish(message) {
      if (connection.ended_ms !== undefined) return
      emit(connection, { ...message, channel: name })
      drop(connection, name, 'closed')
    },
  })
  const subscribe = (connection: Connection, { channel: name, after, data }: Subscribe) => {
    const channel = findChannel(name, ports.channels())
    if (!channel) return refuse(connection, name, 'NOT_FOUND', 'There is no such channel.')
    const project_id = authorizeChannel(channel, connection.actor, ports)
    const open = connection.subscriptions.get(name)
    // Asked for again it goes on where it is: what was sent is not sent a second time.
    if (open) return emit(connection, { type: 'subscribed', channel: name, cursor: open.cursor(), data: {} })
    const too_many = excess(connection, channel)
    if (too_many) return refuse(connection, name, 'RATE_LIMITED', too_many)
    if (after !== undefined && !isCursor(channel, String(after)))
      return refuse(
        connection,
        name,
        'BAD_REQUEST',
        'after: must be the cursor of an earlier message of this channel.',
      )
    connection.user.starts.spend(1)
    const outlet = outletOf(connection, name)
    const from = after === undefined ? undefined : String(after)
    const wish = { actor: () => connection.actor, project_id, after: from, options: data }
    const subscription = createSubscription(ports, channel, wish, outlet)
    if (connection.ended_ms !== undefined) return subscription.stop('connection_lost')
    connection.subscriptions.set(name, subscription)
    const logs = LOGS.has(channel.of.kind) ? 1 : 0
    connection.logs += logs
    connection.user.logs += logs
    connection.user.subscriptions += 1
    outlet.due()
  }

  const act = (connection: Connection, message: Incoming) => {
    if (message.type === 'ping')
      return emit(connection, { type: 'pong', channel: null, cursor: null, data: {} })
    if (message.type === 'subscribe') return subscribe(connection, message)
    if (message.type === 'input' || message.type === 'resize') {
      const session = connection.subscriptions.get(message.channel)
      if (session?.receive) return session.receive(inputOf(message))
      return refuse(
        connection,
        message.channel,
        'NOT_FOUND',
        'No channel that accepts input is open on this connection.',
      )
    }
    drop(connection, message.channel, 'closed')
    emit(connection, { type: 'unsubscribed', channel: message.channel, cursor: null, data: {} })
  }

  /** Acts on a message and tells its sender what was wrong with it. */
  const answer = (connection: Connection, message: Incoming) => {
    try {
      act(connection, message)
    } catch (error) {
      if (!(error instanceof ApiError)) ports.log.error('A message of a WebSocket failed', { error })
      const { code, message: text } = told(error, 'Something went wrong on the server.')
      refuse(connection, 'channel' in message ? message.channel : null, code, text)
    }
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
        drop(connection, name, 'revoked')
        const { code, message } = told(error, 'The right to this channel cannot be checked.')
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

  // Its logs, terminals, deployments and backups go where an app goes.
  const stopHearingMoves = ports.events.subscribe((event) => {
    if (event.type !== 'app.moved') return
    for (const connection of [...connections.values()])
      if (followsApp(connection, event, ports)) check(connection)
  })

  const keepUp = (connection: Connection, now: number) => {
    const { peer } = connection
    const has_to_go = connection.ended_ms !== undefined && now - connection.ended_ms > FAREWELL_MS
    if (has_to_go || now - connection.heard_ms > SILENT_MS) {
      forget(connection)
      return peer.terminate()
    }
    if (connection.is_held && connection.user.received.isLeft()) {
      connection.is_held = false
      peer.resume()
    }
    if (connection.ended_ms !== undefined) return
    if (now - (connection.open_since_ms ?? now) > WHOLE_MS)
      return end(connection, CLOSE.policy, 'The message did not come in time.')
    if (now - connection.pinged_ms >= PING_MS) {
      connection.pinged_ms = now
      peer.ping()
    }
    if (connection.full_since_ms === undefined) return
    if (peer.bufferedBytes() <= fullAt()) connection.full_since_ms = undefined
    else if (now - connection.full_since_ms > FULL_FOR_MS) end(connection, CLOSE.too_slow, TOO_SLOW)
  }

  return {
    get size() {
      return connections.size
    },
    admits: (user_id) => connections.size < MAX_CONNECTIONS && shares.admits(user_id),
    open(peer, actor) {
      const now = clock.monotonic_ms()
      const user = shares.userOf(actor.user_id)
      user.connections += 1
      user.openings.spend(1)
      const made = newConnection(peer, actor, { user, share: shares.open(user) }, now)
      const inbox = inboxOf(user.id, (message) => answer(connection, message))
      const connection: Connection = { ...made, inbox }
      connections.set(peer, connection)
    },
    received(peer, frames, bytes, is_open = false) {
      const connection = connections.get(peer)
      if (!connection) return true
      const { user } = connection
      connection.open_since_ms = is_open ? (connection.open_since_ms ?? clock.monotonic_ms()) : undefined
      // Who sent far too many may come back when those that were let in are paid for.
      if (user.frames.isLeft()) user.frames.spend(Math.min(frames, MAX_FRAMES_COUNTED))
      user.received.spend(bytes)
      if (!user.frames.isLeft()) {
        end(connection, CLOSE.policy, 'Too many frames.')
        peer.pause()
        return false
      }
      if (!user.received.isLeft()) {
        connection.is_held = true
        peer.pause()
      }
      return true
    },
    message(peer, text) {
      const connection = connections.get(peer)
      if (!connection || connection.ended_ms !== undefined) return
      const now = clock.monotonic_ms()
      connection.heard_ms = now
      if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES)
        return end(connection, CLOSE.too_large, 'The message is too large.')
      const message = readIncoming(text)
      const is_fault = 'fault' in message
      if (!isWithinLimits(connection, is_fault ? undefined : message, now))
        return end(connection, CLOSE.policy, 'Too many messages.')
      if (is_fault) return refuse(connection, null, 'BAD_REQUEST', message.fault)
      connection.inbox.take(message)
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
      const due = [...connections.values()].filter(
        ({ checked_ms, ended_ms }) => ended_ms === undefined && now - checked_ms >= CHECK_MS,
      )
      for (const connection of due.slice(0, CHECKS_AT_ONCE)) check(connection)
      shares.prune()
    },
    stop() {
      stopHearing()
      stopHearingMoves()
      turns.stop()
      for (const connection of [...connections.values()])
        end(
          connection,
          CLOSE.going_away,
          'The server restarts. Connect again and go on from the last cursor.',
        )
    },
  }
}
