/** Limits how many steps of one kind run at once; first come, first served. */
export interface Pool {
  /** Waits for a place; rejects with the signal's reason when it aborts. Call the result to give the place back. */
  acquire(signal: AbortSignal): Promise<() => void>
  readonly waiting: number
}

export function createPool(size: number): Pool {
  let free = size
  const queue: (() => void)[] = []
  const release = () => {
    const next = queue.shift()
    if (next) next()
    else free += 1
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
