/**
 * A bounded queue between a producer that cannot wait for its reader and an async iterator. When it is full,
 * the oldest value goes.
 */
export interface Channel<T> extends AsyncIterable<T> {
  push(value: T): void
  /** Ends the iteration after the queued values; with an error, the iteration throws it. */
  end(error?: unknown): void
}

/**
 * A channel that holds at most `capacity` values. `onClose` runs once, when the reader leaves or has read
 * all.
 */
export function createChannel<T>(capacity: number, onClose: () => void): Channel<T> {
  const queue: T[] = []
  let ended = false
  let failure: unknown
  let wake: () => void = () => {}

  async function* read(): AsyncGenerator<T> {
    try {
      for (;;) {
        while (queue.length > 0) yield queue.shift() as T
        if (ended) break
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      if (failure !== undefined) throw failure
    } finally {
      ended = true
      onClose()
    }
  }

  const iterator = read()
  return {
    push(value) {
      if (ended) return
      if (queue.length >= capacity) queue.shift()
      queue.push(value)
      wake()
    },
    end(error) {
      if (ended) return
      ended = true
      failure = error
      wake()
    },
    [Symbol.asyncIterator]: () => iterator,
  }
}
