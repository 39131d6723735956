/** One look-up that any number of callers wait for. */
interface Lookup<T> {
  found: Promise<T>
  ending: AbortController
  waiting: number
}

/**
 * Looks a name up once for all who ask for it at the same time, and ends the look-up with the last of them.
 * Once `most` are under way, the one that hangs the longest makes room for the next: names that answer are gone
 * within moments, so that names that never do take the place of each other alone.
 */
export function shareLookups<T>(
  look: (name: string, signal: AbortSignal) => Promise<T>,
  most: number,
): (name: string, signal?: AbortSignal) => Promise<T> {
  /** In the order of their beginning. */
  const under_way = new Map<string, Lookup<T>>()

  function forget(name: string, lookup: Lookup<T>): void {
    if (under_way.get(name) === lookup) under_way.delete(name)
  }
  function end(name: string, lookup: Lookup<T>): void {
    forget(name, lookup)
    lookup.ending.abort()
  }
  function begin(name: string): Lookup<T> {
    const [oldest] = under_way
    if (oldest && under_way.size >= most) end(...oldest)
    const ending = new AbortController()
    const lookup = { found: look(name, ending.signal), ending, waiting: 0 }
    under_way.set(name, lookup)
    const done = () => forget(name, lookup)
    lookup.found.then(done, done)
    return lookup
  }

  return (name, signal) =>
    new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const lookup = under_way.get(name) ?? begin(name)
      lookup.waiting += 1
      const leave = () => {
        reject(signal!.reason)
        lookup.waiting -= 1
        if (lookup.waiting === 0) end(name, lookup)
      }
      signal?.addEventListener('abort', leave, { once: true })
      const stay = () => signal?.removeEventListener('abort', leave)
      lookup.found.then(
        (found) => (stay(), resolve(found)),
        (error: unknown) => (stay(), reject(error)),
      )
    })
}
