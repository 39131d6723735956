import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Serve = (req: IncomingMessage, res: ServerResponse) => void

/** Requests that may wait on one connection. Browsers send none before the answer to the one before is there. */
const MOST_WAITING = 100

/**
 * Serves the requests of a connection one after the other, as they are answered, and others in between. A client may
 * send thousands in one packet: Node would begin them all before anybody else is heard, and hold all answers.
 */
export function oneAfterAnother(serve: Serve): Serve {
  /** What waits on each connection on which something is under way. */
  const lines = new WeakMap<Socket, (() => void)[]>()
  const leave = (socket: Socket, line: (() => void)[]) => {
    const next = line.shift()
    if (!next || socket.destroyed) lines.delete(socket)
    else setImmediate(next)
  }
  return (req, res) => {
    const { socket } = req
    // What is left of a packet whose connection was ended over it.
    if (socket.destroyed) return
    const line = lines.get(socket)
    if (line && line.length >= MOST_WAITING) return void socket.destroy()
    const own = line ?? []
    const begin = () => {
      res.once('close', () => leave(socket, own))
      serve(req, res)
    }
    if (line) return void line.push(begin)
    lines.set(socket, own)
    begin()
  }
}
