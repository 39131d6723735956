/** Watches long work that should show signs of life. */
export interface Heartbeat {
  /** Aborts when the caller's signal does, when the work is silent for too long, or at its time limit. */
  readonly signal: AbortSignal
  /** The work has shown a sign of life. */
  alive(): void
  /** Which of the two limits ended it, if one did. */
  ended(): 'silence' | 'limit' | undefined
  stop(): void
}

/** `silence_ms` 0 means that silence is fine. */
export function heartbeat(
  { silence_ms, limit_ms }: { silence_ms: number; limit_ms: number },
  signal: AbortSignal,
): Heartbeat {
  const controller = new AbortController()
  let ended: 'silence' | 'limit' | undefined
  const end = (why: 'silence' | 'limit') => () => {
    ended ??= why
    controller.abort()
  }
  const abort = () => controller.abort()
  if (signal.aborted) controller.abort()
  else signal.addEventListener('abort', abort, { once: true })
  const limit = setTimeout(end('limit'), limit_ms)
  const silence = silence_ms > 0 ? setTimeout(end('silence'), silence_ms) : undefined
  return {
    signal: controller.signal,
    alive: () => void silence?.refresh(),
    ended: () => ended,
    stop() {
      clearTimeout(limit)
      clearTimeout(silence)
      signal.removeEventListener('abort', abort)
    },
  }
}
