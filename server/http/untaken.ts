import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HeldBytes } from '#server/kernel/held-bytes'
import { mutates } from './request.ts'

interface Exchange {
  req: IncomingMessage
  res: ServerResponse
}

/** So long a client may take nothing of an answer. A browser that is out of reach for longer has given up itself. */
const PATIENCE_MS = 60_000

/**
 * Ends the connection of a client that takes nothing of an answer any more: with it end the memory, the file and
 * the connections that stand behind the answer. Work that takes long has nothing to be taken yet.
 */
export function endUntaken({ req: { socket }, res }: Exchange, patience_ms = PATIENCE_MS): void {
  res.setTimeout(patience_ms, () => {
    if (socket.writableLength > 0 || res.writableLength > 0) socket.destroy()
  })
}

/** So long the rest of a body may take that was answered before it was there: as long as a whole body. */
const REST_MS = 30_000

/**
 * Ends the connection of a client that sends on and on what nobody reads. A request may last an hour, for the sake of
 * uploads; one that was answered already would hold a connection for as long, for a byte every few seconds.
 */
export function endUnsent({ req, res }: Exchange, patience_ms = REST_MS): void {
  res.once('finish', () => {
    if (req.complete) return
    const timer = setTimeout(() => req.socket.destroy(), patience_ms)
    timer.unref()
    const arrived = () => clearTimeout(timer)
    req.once('end', arrived).once('close', arrived)
  })
}

/** What is to be done at the end of a connection: one listener for all that is under way on it. */
const ends = new WeakMap<Socket, Set<() => void>>()
function atEndOf(socket: Socket): Set<() => void> {
  const known = ends.get(socket)
  if (known) return known
  const made = new Set<() => void>()
  ends.set(socket, made)
  socket.once('close', () => {
    for (const end of made) end()
  })
  return made
}

/** Calls back once an answer was taken or its connection has ended; nobody tells answers that wait for others so. */
function onceOver({ req: { socket }, res }: Exchange, act: () => void): void {
  // Whoever waited for their turn may have gone meanwhile: nothing tells of it a second time.
  if (socket.destroyed || res.closed) return act()
  const waiting = atEndOf(socket)
  const over = () => {
    if (waiting.delete(over)) act()
  }
  waiting.add(over)
  res.once('close', over)
}

/** Counts what one request holds in memory until its answer was taken. */
export interface AnswerShare {
  /** Whose answers they are. */
  owner: string
  /** Throws RATE_LIMITED for whoever does not take what they asked for. */
  requireRoom(): void
  /**
   * Counts these bytes in the place of those before. Throws RATE_LIMITED for another large answer to whoever takes
   * none; what is done already is always answered.
   */
  hold(bytes: number): void
}

export function answerShare(exchange: Exchange, answers: HeldBytes, owner: string): AnswerShare {
  const share = answers.open(owner)
  let is_over = false
  onceOver(exchange, () => {
    is_over = true
    share.release()
  })
  return {
    owner,
    requireRoom: () => answers.requireRoom(owner),
    hold(bytes) {
      if (is_over) return
      share.release()
      if (!mutates(exchange.req.method ?? 'GET')) answers.requireRoom(owner, bytes)
      share.count(bytes)
    },
  }
}

/** Counts the body of one request until it is answered: what is done with it may wait for hosts of users. */
export function bodyShare(
  exchange: Exchange,
  bodies: HeldBytes,
  { user_id }: { user_id: string },
): { hold(bytes: number): void } {
  const share = bodies.open(user_id)
  let is_over = false
  onceOver(exchange, () => {
    is_over = true
    share.release()
  })
  return {
    hold(bytes) {
      if (!is_over) share.hold(bytes)
    },
  }
}
