/** Lets containers start side by side, and none while something is done that needs them to stay as they are. */
export interface StartGate {
  start<T>(work: () => Promise<T>): Promise<T>
  /** Waits for the starts that are under way; those that come meanwhile wait for its end. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

export function createStartGate(): StartGate {
  const starting = new Set<Promise<unknown>>()
  let closed: Promise<unknown> | undefined
  return {
    async start(work) {
      while (closed) await closed
      const begun = work()
      const settled: Promise<unknown> = begun.catch(() => {}).finally(() => starting.delete(settled))
      starting.add(settled)
      return begun
    },
    alone(work) {
      const result = Promise.all([closed, ...starting]).then(work)
      const mine = result
        .catch(() => {})
        .finally(() => {
          if (closed === mine) closed = undefined
        })
      closed = mine
      return result
    },
  }
}
