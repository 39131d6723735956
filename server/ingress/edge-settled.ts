import { setTimeout as delay } from 'node:timers/promises'

/** How long somebody who asked for a change waits for an edge that is busy or away. */
const MOST_MS = 2_000

/**
 * Makes the wait of answers that promise that the edge obeys: it resolves once everything that was asked for
 * before has been tried there, or after this time. Never rejects, and holds nothing up. `deliveries` are
 * asked one after another, because what one of them brings to the edge may call for the next: routes insist
 * on HTTPS once there is a certificate.
 */
export const createEdgeWait =
  (deliveries: readonly (() => Promise<void>)[], most_ms = MOST_MS) =>
  async (): Promise<void> => {
    const limit = new AbortController()
    const all = async () => {
      for (const settled of deliveries) await settled()
    }
    await Promise.race([all(), delay(most_ms, undefined, { signal: limit.signal }).catch(() => undefined)])
    limit.abort()
  }
