/** Requests that wait for an answer, by the origin that they wait for. */
export interface Waiting {
  /** Does the work, unless `signal` aborts first: then it is no longer waited for. */
  until<T>(origin: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** Aborts once nobody waits for the origin any more; undefined where nobody does. */
  signalOf(origin: string): AbortSignal | undefined
}

/**
 * The HTTP client hears of a request's end only once it has a connection, and tells its connector of no request at
 * all, since any of them may take the connection. Here a request ends in time while its name or its server hangs,
 * and the attempt to connect ends with the last request that it was made for.
 */
export function createWaiting(): Waiting {
  const origins = new Map<string, { count: number; none: AbortController }>()
  return {
    async until(origin, signal, work) {
      signal.throwIfAborted()
      const waiting = origins.get(origin) ?? { count: 0, none: new AbortController() }
      origins.set(origin, waiting)
      waiting.count += 1
      const { promise: ended, reject } = Promise.withResolvers<never>()
      const onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        return await Promise.race([work(), ended])
      } finally {
        signal.removeEventListener('abort', onAbort)
        waiting.count -= 1
        if (waiting.count === 0) {
          origins.delete(origin)
          waiting.none.abort()
        }
      }
    },
    signalOf: (origin) => origins.get(origin)?.none.signal,
  }
}
