/** Limits how many steps of one kind run at once; first come, first served. */
export interface Pool {
  /**
   * Waits for a place; rejects with the signal's reason when it aborts. Call the result to give the place
   * back.
   */
  acquire(signal: AbortSignal): Promise<() => void>
  readonly waiting: number
  /** Changes how many may run at once: those that run go on, and as many fewer or more enter from then on. */
  resize(size: number): void
}

export function createPool(initial: number): Pool {
  let size = initial
  let free = initial
  const queue: (() => void)[] = []
  /** Lets those in who wait, as far as there are places; below zero, more run than now may. */
  const admit = () => {
    while (free > 0 && queue.length > 0) {
      free -= 1
      queue.shift()!()
    }
  }
  const release = () => {
    free += 1
    admit()
  }
  const place = () => {
    let held = true
    return () => {
      if (held) release()
      held = false
    }
  }
  return {
    get waiting() {
      return queue.length
    },
    resize(next) {
      free += next - size
      size = next
      admit()
    },
    async acquire(signal) {
      signal.throwIfAborted()
      if (free > 0) {
        free -= 1
        return place()
      }
      return new Promise((resolve, reject) => {
        const enter = () => {
          signal.removeEventListener('abort', leave)
          resolve(place())
        }
        const leave = () => {
          queue.splice(queue.indexOf(enter), 1)
          reject(signal.reason as Error)
        }
        queue.push(enter)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
  }
}
