/**
 * A bounded queue between a producer that cannot wait for its reader and an async iterator. Producers that can wait look at
 * `full` and `drained()`; those that cannot lose the oldest values, which `onDrop` counts.
 */
export interface Channel<T> extends AsyncIterable<T> {
  push(value: T): void
  /** Ends the iteration after the queued values; with an error, the iteration throws it. */
  end(error?: unknown): void
  readonly full: boolean
  /** Resolves once the reader has caught up, or the channel has ended. */
  drained(): Promise<void>
  readonly dropped: number
}

/** A channel that holds at most `capacity` values. `onClose` runs once, when the reader leaves or the channel ends. */
export function createChannel<T>(capacity: number, onClose: () => void = () => {}): Channel<T> {
  const queue: T[] = []
  const waiting: (() => void)[] = []
  let ended = false
  let failure: unknown
  let dropped = 0
  let wakeReader: () => void = () => {}
  let closed = false

  function close(): void {
    if (closed) return
    closed = true
    ended = true
    for (const resume of waiting.splice(0)) resume()
    onClose()
  }

  async function* read(): AsyncGenerator<T> {
    try {
      for (;;) {
        if (queue.length > 0) {
          const value = queue.shift() as T
          if (queue.length === 0) for (const resume of waiting.splice(0)) resume()
          yield value
          continue
        }
        if (ended) break
        await new Promise<void>((resolve) => { wakeReader = resolve })
      }
      if (failure !== undefined) throw failure
    } finally {
      close()
    }
  }

  const iterator = read()
  return {
    push(value) {
      if (ended) return
      if (queue.length >= capacity) {
        queue.shift()
        dropped += 1
      }
      queue.push(value)
      wakeReader()
    },
    end(error) {
      if (ended) return
      ended = true
      failure = error
      for (const resume of waiting.splice(0)) resume()
      wakeReader()
    },
    get full() { return queue.length >= capacity },
    get dropped() { return dropped },
    drained() {
      if (ended || queue.length === 0) return Promise.resolve()
      return new Promise((resolve) => { waiting.push(resolve) })
    },
    [Symbol.asyncIterator]: () => iterator,
  }
}
