import type { Readable } from 'node:stream'
import type { Actor } from '#server/kernel/access'
import type { HttpPorts } from './context.ts'

/** How often a right is asked for that may run out, or go with its resource, without anybody telling. */
const ASK_MS = 30_000

/**
 * Ends a stream with what `require` throws once its caller may not send or have it any more. A download or an
 * upload may take hours: the right that it began with may have ended meanwhile, as that of an open WebSocket.
 */
export function whileAllowed<S extends Readable>(
  stream: S,
  ports: Pick<HttpPorts['http'], 'onRevocation' | 'refresh'>,
  actor: Actor,
  require: (actor: Actor) => void,
): S {
  const ask = () => {
    try {
      require(ports.refresh(actor))
    } catch (error) {
      stream.destroy(error as Error)
    }
  }
  const stopHearing = ports.onRevocation((user_id) => {
    if (user_id === actor.user_id) ask()
  })
  const timer = setInterval(ask, ASK_MS)
  timer.unref()
  stream.once('close', () => {
    clearInterval(timer)
    stopHearing()
  })
  return stream
}
