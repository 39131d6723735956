import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Hooks, Peer as SocketPeer } from 'crossws'
import type { Actor, Credentials } from '#server/kernel/access'
import { ApiError, starting } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { createLog } from '#server/kernel/log'
import { own } from '#server/kernel/own'
import { createPace } from '#server/kernel/pace'
import { createFrameMeter } from '#server/realtime/frame-meter'
import { CLOSE, type Peer, type Realtime } from '#server/realtime/realtime'
import type { HttpPorts, RequestFacts } from './context.ts'
import { SECURITY_HEADERS, toErrorAnswer } from './errors.ts'
import { plainAddress } from './request.ts'
import { readSession } from './session-cookie.ts'

/** What opening a WebSocket needs of the product. */
export interface WebSocketParts {
  realtime: Realtime
  http: Pick<HttpPorts['http'], 'log' | 'client' | 'enter' | 'refused' | 'refresh' | 'turn'>
  /**
   * Who opens it. Throws UNAUTHORIZED, CSRF_INVALID for a cookie of another origin, PASSWORD_CHANGE_REQUIRED.
   */
  authenticate(credentials: Credentials & { ticket?: string }, facts: RequestFacts): Promise<Actor> | Actor
}

/** The socket below the library's peer, for what the library does not pass on. */
interface NodeSocket {
  readonly bufferedAmount: number
  readonly isPaused: boolean
  readonly _socket: Socket
  ping(): void
  pause(): void
  resume(): void
  on(event: 'pong', listener: () => void): void
}
interface Upgrade {
  context: Record<string, unknown>
  /** The request of Node: to ask the library for its headers loads `fetch`, a tenth of a second in one piece. */
  _req: IncomingMessage
}
const headerOf = ({ _req: { headers } }: Upgrade, name: string): string | undefined => {
  const value = own(headers, name)
  return Array.isArray(value) ? value.join(', ') : value
}

const socketOf = (peer: SocketPeer) => (peer as unknown as { _internal: { ws: NodeSocket } })._internal.ws

function factsOf(upgrade: Upgrade, parts: WebSocketParts): RequestFacts {
  const client = parts.http.client(plainAddress(upgrade._req.socket.remoteAddress ?? ''), {
    forwarded_for: headerOf(upgrade, 'x-forwarded-for'),
    forwarded_proto: headerOf(upgrade, 'x-forwarded-proto'),
    real_ip: headerOf(upgrade, 'x-real-ip'),
    edge_proof: headerOf(upgrade, 'x-portreeve-edge'),
  })
  return {
    id: newId('req'),
    method: 'GET',
    path: '/api/ws',
    ...client,
    user_agent: (headerOf(upgrade, 'user-agent') ?? '').slice(0, 512),
  }
}

function credentialsOf(
  upgrade: Upgrade,
  secure: boolean,
  ticket: string | undefined,
): Credentials & { ticket?: string } {
  return {
    authorization: headerOf(upgrade, 'authorization'),
    api_key: headerOf(upgrade, 'x-api-key'),
    session: readSession(headerOf(upgrade, 'cookie'), secure),
    csrf_token: undefined,
    origin: headerOf(upgrade, 'origin'),
    fetch_site: headerOf(upgrade, 'sec-fetch-site'),
    host: headerOf(upgrade, 'host'),
    mutating: false,
    ...(ticket === undefined ? {} : { ticket }),
  }
}

const PLAIN_HEADERS = Object.fromEntries(
  Object.entries(SECURITY_HEADERS).filter(([, value]) => encodeURIComponent(value) === value),
)

/** What the library sends of a `Response`, which is not made of one: that, too, would load `fetch`. */
const responseOf = (
  status: number,
  headers: Record<string, string>,
  body: readonly Uint8Array[],
): Response => {
  const sent = { ok: false, status, statusText: '', headers: new Map(Object.entries(headers)), body }
  return sent as unknown as Response
}

/**
 * The envelope of an error as the answer to an upgrade, with those headers of other answers that the library sends as
 * they are: a content type and a policy it would encode beyond recognition.
 */
export function refusal(error: unknown, request_id: string, log: HttpPorts['http']['log']): Response {
  const { status, body, headers } = toErrorAnswer(error, request_id, log)
  const sent = { ...PLAIN_HEADERS, ...headers, 'X-Request-Id': request_id, Connection: 'close' }
  return responseOf(status, sent, [Buffer.from(JSON.stringify(body))])
}

async function admit(upgrade: Upgrade, parts: WebSocketParts): Promise<Response | undefined> {
  const facts = factsOf(upgrade, parts)
  try {
    await parts.http.enter(facts.address)
    const search = new URLSearchParams(upgrade._req.url?.split('?')[1] ?? '')
    const actor = await parts.authenticate(
      credentialsOf(upgrade, facts.secure, search.get('ticket') ?? undefined),
      facts,
    )
    // Fifty that one user opens at once are begun one after the other; whose they are then is asked for at the end.
    await parts.http.turn(actor.user_id)
    if (!parts.realtime.admits(actor.user_id))
      throw new ApiError('RATE_LIMITED', 'Too many connections are open. Close one first.', undefined, 10)
    upgrade.context.actor = actor
    return undefined
  } catch (error) {
    if (error instanceof ApiError) parts.http.refused(facts, error.code, undefined, 'self')
    return refusal(error, facts.id, parts.http.log)
  }
}

/** Time in which all sockets are read as they come, in one round of the event loop, and bytes between two looks at it. */
const READ_AT_ONCE_MS = 5
const READ_AT_ONCE_BYTES = 4_096
let read_ms = 0

/** Reads a piece of what arrived as far as there is time; the rest, if any. */
function readSome(piece: Buffer, read: (part: Buffer) => void): Buffer | undefined {
  if (read_ms === 0) setImmediate(() => (read_ms = 0))
  for (let from = 0; from < piece.length; from += READ_AT_ONCE_BYTES) {
    if (read_ms >= READ_AT_ONCE_MS) return piece.subarray(from)
    const began = performance.now()
    read(piece.subarray(from, from + READ_AT_ONCE_BYTES))
    read_ms += performance.now() - began
  }
  return undefined
}

/**
 * Counts what arrives before the library reads it, which gets nothing of what is not let in. What many sockets send
 * at once is read in turns, some kilobytes at a time, with others served in between: each frame may be a ping that
 * has to be answered.
 */
function meter(
  below: NodeSocket,
  owner: string,
  isLetIn: (frames: number, bytes: number, is_open: boolean) => boolean,
): void {
  const socket = below._socket
  const frames = createFrameMeter()
  const pace = createPace(owner)
  let rest: Buffer | undefined
  const [read] = socket.listeners('data')
  if (!read) return
  socket.removeAllListeners('data')
  const take = (part: Buffer): void => {
    if (isLetIn(frames.count(part), part.length, frames.is_open)) read.call(socket, part)
  }
  const readOn = async () => {
    while (rest) {
      socket.pause()
      await pace.pause()
      if (socket.destroyed) return
      rest = readSome(rest, take)
    }
    if (!below.isPaused) below.resume()
  }
  const counted = (piece: Buffer) => {
    // The library goes on by itself once it has worked up what it read.
    if (rest) {
      rest = Buffer.concat([rest, piece])
      socket.pause()
      return
    }
    rest = readSome(piece, take)
    if (rest) void readOn()
  }
  // By this name Node finds it when the library takes its own listener away, to read no more.
  socket.on('data', Object.assign(counted, { listener: read }))
}

/** The right to open as it is now: it may have ended since the answer, when nobody knew of it to be told. */
function asItIsNow(admitted: Actor, parts: WebSocketParts): Actor | undefined {
  try {
    return parts.http.refresh(admitted)
  } catch {
    return undefined
  }
}

/** Hooks of `GET /api/ws`: who may open it is decided before the answer 101. */
export function createWebSocketHooks(running: () => WebSocketParts | undefined): Partial<Hooks> {
  const peers = new WeakMap<SocketPeer, Peer>()
  const with_peer = (socket: SocketPeer, act: (realtime: Realtime, peer: Peer) => void) => {
    const parts = running()
    const peer = peers.get(socket)
    if (parts && peer) act(parts.realtime, peer)
  }
  return {
    upgrade(request) {
      const parts = running()
      if (!parts) return refusal(starting(), newId('req'), createLog('text', 'error'))
      return admit(request as unknown as Upgrade, parts)
    },
    open(socket) {
      const parts = running()
      const admitted = socket.context.actor as Actor | undefined
      if (!parts || !admitted) return socket.terminate()
      const actor = asItIsNow(admitted, parts)
      if (!actor) return socket.close(CLOSE.unauthorized, 'The session, key or user has ended.')
      const below = socketOf(socket)
      const peer: Peer = {
        send: (text) => void socket.send(text),
        bufferedBytes: () => below.bufferedAmount,
        ping: () => below.ping(),
        pause: () => below.pause(),
        resume: () => below.resume(),
        close: (code, reason) => socket.close(code, reason),
        terminate: () => socket.terminate(),
      }
      peers.set(socket, peer)
      parts.realtime.open(peer, actor)
      meter(below, actor.user_id, (...arrived) => parts.realtime.received(peer, ...arrived))
      below.on('pong', () => with_peer(socket, (realtime) => realtime.alive(peer)))
    },
    message: (socket, message) =>
      with_peer(socket, (realtime, peer) => realtime.message(peer, message.text())),
    close: (socket) => with_peer(socket, (realtime, peer) => realtime.close(peer)),
    error: (socket) => with_peer(socket, (realtime, peer) => realtime.close(peer)),
  }
}
