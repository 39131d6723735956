import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Hooks, Peer as SocketPeer } from 'crossws'
import type { Actor, Credentials } from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { createFrameMeter } from '#server/realtime/frame-meter'
import { CLOSE, type Peer, type Realtime } from '#server/realtime/realtime'
import type { HttpPorts, RequestFacts } from './context.ts'
import { toErrorAnswer } from './errors.ts'
import { plainAddress } from './request.ts'
import { readSession } from './session-cookie.ts'

/** What opening a WebSocket needs of the product. */
export interface WebSocketParts {
  realtime: Realtime
  http: Pick<HttpPorts['http'], 'log' | 'client' | 'refused' | 'refresh'>
  /**
   * Who opens it. Throws UNAUTHORIZED, CSRF_INVALID for a cookie of another origin, PASSWORD_CHANGE_REQUIRED.
   */
  authenticate(credentials: Credentials & { ticket?: string }, facts: RequestFacts): Promise<Actor> | Actor
}

/** The socket below the library's peer, for what the library does not pass on. */
interface NodeSocket {
  readonly bufferedAmount: number
  readonly _socket: Socket
  ping(): void
  pause(): void
  resume(): void
  on(event: 'pong', listener: () => void): void
}
interface Upgrade {
  url: string
  headers: Headers
  context: Record<string, unknown>
  _req?: IncomingMessage
}

const socketOf = (peer: SocketPeer) => (peer as unknown as { _internal: { ws: NodeSocket } })._internal.ws

function factsOf(upgrade: Upgrade, parts: WebSocketParts): RequestFacts {
  const { headers } = upgrade
  const client = parts.http.client(plainAddress(upgrade._req?.socket.remoteAddress ?? ''), {
    forwarded_for: headers.get('x-forwarded-for') ?? undefined,
    forwarded_proto: headers.get('x-forwarded-proto') ?? undefined,
    real_ip: headers.get('x-real-ip') ?? undefined,
    edge_proof: headers.get('x-portreeve-edge') ?? undefined,
  })
  return {
    id: newId('req'),
    method: 'GET',
    path: '/api/ws',
    ...client,
    user_agent: (headers.get('user-agent') ?? '').slice(0, 512),
  }
}

function credentialsOf(
  { headers }: Upgrade,
  secure: boolean,
  ticket: string | undefined,
): Credentials & { ticket?: string } {
  const header = (name: string) => headers.get(name) ?? undefined
  return {
    authorization: header('authorization'),
    api_key: header('x-api-key'),
    session: readSession(headers.get('cookie') ?? undefined, secure),
    csrf_token: undefined,
    origin: header('origin'),
    fetch_site: header('sec-fetch-site'),
    host: header('host'),
    mutating: false,
    ...(ticket === undefined ? {} : { ticket }),
  }
}

/**
 * The envelope of an error as the answer to an upgrade. Bytes, because the library would encode the content
 * type beyond recognition.
 */
export function refusal(error: unknown, request_id: string, log: HttpPorts['http']['log']): Response {
  const answer = toErrorAnswer(error, request_id, log)
  return new Response(new TextEncoder().encode(JSON.stringify(answer.body)), {
    status: answer.status,
    headers: { 'X-Request-Id': request_id, Connection: 'close' },
  })
}

async function admit(upgrade: Upgrade, parts: WebSocketParts): Promise<Response | undefined> {
  const facts = factsOf(upgrade, parts)
  try {
    const search = new URLSearchParams(upgrade._req?.url?.split('?')[1] ?? '')
    const actor = await parts.authenticate(
      credentialsOf(upgrade, facts.secure, search.get('ticket') ?? undefined),
      facts,
    )
    if (!parts.realtime.admits(actor.user_id))
      throw new ApiError('RATE_LIMITED', 'Too many connections are open. Close one first.', undefined, 10)
    upgrade.context.actor = actor
    return undefined
  } catch (error) {
    if (error instanceof ApiError) parts.http.refused(facts, error.code, undefined, 'self')
    return refusal(error, facts.id, parts.http.log)
  }
}

/** Counts what arrives before the library reads it, which gets nothing of what is not let in. */
function meter(socket: Socket, isLetIn: (frames: number, bytes: number) => boolean): void {
  const framesIn = createFrameMeter()
  const [read] = socket.listeners('data')
  if (!read) return
  socket.removeAllListeners('data')
  const counted = (piece: Buffer) => {
    if (isLetIn(framesIn(piece), piece.length)) read.call(socket, piece)
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
      if (!parts) return new Response(null, { status: 503 })
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
      meter(below._socket, (frames, bytes) => parts.realtime.received(peer, frames, bytes))
      below.on('pong', () => with_peer(socket, (realtime) => realtime.alive(peer)))
    },
    message: (socket, message) =>
      with_peer(socket, (realtime, peer) => realtime.message(peer, message.text())),
    close: (socket) => with_peer(socket, (realtime, peer) => realtime.close(peer)),
    error: (socket) => with_peer(socket, (realtime, peer) => realtime.close(peer)),
  }
}
