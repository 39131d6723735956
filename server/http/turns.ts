import { ApiError } from '#server/kernel/errors'

/** Requests of one user that may wait for their turn: more than any page or program has under way. */
const MOST_WAITING = 500

/**
 * Turns at beginning to work on a request: one of a user in each round of the event loop. Whoever sends hundreds at
 * once, over as many connections as they like, would else have all of them worked on before anybody else is heard.
 */
export function createRequestTurns(most_waiting = MOST_WAITING) {
  /** What waits, by users of whom something began in this round. */
  const lines = new Map<string, (() => void)[]>()
  const next = (owner: string): void => {
    const begin = lines.get(owner)!.shift()
    if (!begin) return void lines.delete(owner)
    setImmediate(next, owner)
    begin()
  }
  /**
   * Undefined where the turn is now; else resolves when it has come. Throws RATE_LIMITED for one too many.
   * @param is_first goes before all others of the owner, however many they are.
   */
  return (owner: string, is_first = false): Promise<void> | undefined => {
    const line = lines.get(owner)
    if (!line) {
      lines.set(owner, [])
      setImmediate(next, owner)
      return undefined
    }
    if (!is_first && line.length >= most_waiting)
      throw new ApiError(
        'RATE_LIMITED',
        'Too many requests at once. Send this one again in a moment.',
        undefined,
        1,
      )
    return new Promise((resolve) => void (is_first ? line.unshift(resolve) : line.push(resolve)))
  }
}
export type RequestTurns = ReturnType<typeof createRequestTurns>
