/** Work that is watched for what it leaves of a disk. */
export interface WatchedRoom {
  /** Aborts when the caller's signal does, and once nothing is left but the reserve. */
  readonly signal: AbortSignal
  /** Whether the disk ended it. */
  filled(): boolean
  stop(): void
}

/** A fast disk takes a quarter of the reserve in the meantime. */
const LOOK_MS = 200

/** Watches a disk until `stop`. A disk of which nothing can be learnt ends nothing: the work itself tells. */
export function watchRoom(signal: AbortSignal, isFull: () => boolean | Promise<boolean>): WatchedRoom {
  const full = new AbortController()
  let is_looking = false
  const look = async (): Promise<void> => {
    if (is_looking) return
    is_looking = true
    if (
      await Promise.resolve()
        .then(isFull)
        .catch(() => false)
    )
      full.abort()
    is_looking = false
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  return {
    signal: AbortSignal.any([signal, full.signal]),
    filled: () => full.signal.aborted && !signal.aborted,
    stop: () => clearInterval(timer),
  }
}

/** Does work that ends with the error of `filled` once the disk is full. */
export async function withinRoom<T>(
  signal: AbortSignal,
  { isFull, filled }: { isFull: () => boolean | Promise<boolean>; filled: () => Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const room = watchRoom(signal, isFull)
  try {
    return await work(room.signal)
  } catch (error) {
    throw room.filled() ? filled() : error
  } finally {
    room.stop()
  }
}
