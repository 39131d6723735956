import type { IncomingMessage } from 'node:http'

/** Pieces that a body may come in, however small. */
const FREE = 1024
/** Bytes that further ones have on average; the smallest packets of a network carry eight times as many. */
const LEAST_BYTES = 64

/**
 * Ends the connection of a request whose body comes in too many small pieces, as no program sends it. A chunk of one
 * byte is six on the way, and a call and an object of eight hundred bytes here: what sixty clients without an account
 * sent in a second took 400 MB, and kept everybody else waiting. A body that nobody reads is cut into pieces as well.
 */
export function endSmallPieces(request: IncomingMessage): void {
  const push = request.push
  let pieces = 0
  let bytes = 0
  request.push = (piece: Buffer | null, encoding) => {
    pieces += 1
    bytes += piece?.length ?? 0
    if (piece === null || pieces <= FREE + bytes / LEAST_BYTES) return push.call(request, piece, encoding)
    request.socket.destroy()
    // What was read with it is still cut into pieces.
    request.push = () => false
    return false
  }
}
