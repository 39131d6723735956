import { setTimeout as delay } from 'node:timers/promises'
import type { Session } from './session.ts'

/** One message of a channel. */
export interface Frame {
  type: string
  channel: string | null
  cursor: string | null
  data: unknown
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 10_000
const PING_MS = 25_000

/** One connection: resolves when it has ended. */
function connect(
  { context, headers }: Session,
  channel: string,
  after: string | undefined,
  signal: AbortSignal,
  hear: (frame: Frame) => void,
): Promise<void> {
  return new Promise((resolve) => {
    // Node's WebSocket takes headers, which browsers do not.
    const socket = new WebSocket(`${context.url.replace(/^http/, 'ws')}/api/ws`, {
      headers,
    } as unknown as string[])
    const pings = setInterval(() => socket.send(JSON.stringify({ type: 'ping' })), PING_MS)
    const end = () => socket.close()
    signal.addEventListener('abort', end, { once: true })
    socket.onopen = () =>
      socket.send(JSON.stringify({ type: 'subscribe', channel, ...(after === undefined ? {} : { after }) }))
    socket.onmessage = ({ data }) => hear(JSON.parse(String(data)) as Frame)
    socket.onerror = () => end()
    socket.onclose = () => {
      clearInterval(pings)
      signal.removeEventListener('abort', end)
      resolve()
    }
  })
}

/**
 * Hears a channel until `signal` ends it. A lost connection is opened again after an ever longer
 * wait, and goes on after the last message that was heard.
 * @param stillThere asked whenever a connection has ended; throws where there is nothing to hear any more.
 */
export async function listen(
  session: Session,
  channel: string,
  hear: (frame: Frame) => void,
  signal: AbortSignal,
  after?: string,
  stillThere?: () => Promise<void>,
): Promise<void> {
  let cursor = after
  let failures = 0
  while (!signal.aborted) {
    await connect(session, channel, cursor, signal, (frame) => {
      failures = 0
      if (frame.channel !== channel) return
      if (frame.cursor !== null) cursor = frame.cursor
      hear(frame)
    })
    if (signal.aborted) return
    await stillThere?.()
    const wait_ms = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++)
    await delay(wait_ms, undefined, { signal }).catch(() => undefined)
  }
}

/** Ends with Ctrl-C, so that what was begun is put in order. */
export function untilInterrupted(): AbortController {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort())
  return controller
}
