/**
 * What some work answers, or `late` when it has not after a time. The work goes on by itself: give it a signal
 * where it should not.
 */
export async function answeredWithin<T>(limit_ms: number, work: Promise<T>, late: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<T>((resolve) => {
    timer = setTimeout(resolve, limit_ms, late)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}

/** Work that is asked for again while it is under way is done once, and answered to all who ask. */
export function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}
