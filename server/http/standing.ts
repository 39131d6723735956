import type { Readable } from 'node:stream'
import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { HttpPorts } from './context.ts'

/** Sessions and keys also end by time: no request outlives them by more than this. */
const MOMENT_MS = 1_000

/** `HttpPorts.watch` on the database that users, sessions, keys and roles are read from. */
export const createWatch = (db: Pick<Db, 'state'>, clock: Pick<Clock, 'monotonic_ms'>) => () => {
  const [state, at_ms] = [db.state(), clock.monotonic_ms()]
  return () => clock.monotonic_ms() - at_ms < MOMENT_MS && db.state() === state
}

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
