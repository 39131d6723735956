import { ApiError } from '#server/kernel/errors'
import { createLines } from '#server/kernel/lines'

/** Requests of one user that may wait for their turn: more than any page or program has under way. */
const MOST_WAITING = 500

/**
 * Turns at beginning to work on a request: one of a user in each round of the event loop. Whoever sends hundreds at
 * once, over as many connections as they like, would else have all of them worked on before anybody else is heard.
 */
export function createRequestTurns(most_waiting = MOST_WAITING) {
  /** What waits, by users of whom something began in this round: what goes first, and the rest. */
  const lines = new Map<string, { first: (() => void)[]; rest: (() => void)[] }>()
  const next = (owner: string): void => {
    const { first, rest } = lines.get(owner)!
    const begin = first.shift() ?? rest.shift()
    if (!begin) return void lines.delete(owner)
    setImmediate(next, owner)
    begin()
  }
  /**
   * Undefined where the turn is now; else resolves when it has come. Throws RATE_LIMITED for one too many.
   * @param is_first goes before all others of the owner that do not, however many they are.
   */
  return (owner: string, is_first = false): Promise<void> | undefined => {
    const line = lines.get(owner)
    if (!line) {
      lines.set(owner, { first: [], rest: [] })
      setImmediate(next, owner)
      return undefined
    }
    const own = is_first ? line.first : line.rest
    if (own.length >= most_waiting)
      throw new ApiError(
        'RATE_LIMITED',
        'Too many requests at once. Send this one again in a moment.',
        undefined,
        1,
      )
    return new Promise((resolve) => void own.push(resolve))
  }
}
export type RequestTurns = ReturnType<typeof createRequestTurns>

/** Requests that are looked at in one round of the event loop, of all callers: some milliseconds of work. */
const LOOKED_AT_ONCE = 50

/**
 * Lets requests in, so many in each round of the event loop, addresses in turn. Before a turn of a user it is found
 * out who they are, which takes a tenth of a millisecond: hundreds that arrive at once would have that done together.
 */
export function createEntrance(at_once = LOOKED_AT_ONCE) {
  const waiting = createLines()
  let looked_at = 0
  const next = (): void => {
    looked_at = 0
    while (looked_at < at_once) {
      const enter = waiting.next()
      if (!enter) break
      looked_at += 1
      enter()
    }
    if (looked_at > 0) setImmediate(next)
  }
  /** Undefined for one that is let in at once; else resolves when it is. */
  return (address: string): Promise<void> | undefined => {
    if (looked_at < at_once && waiting.isEmpty()) {
      if (looked_at === 0) setImmediate(next)
      looked_at += 1
      return undefined
    }
    return new Promise((resolve) => waiting.join(address, resolve))
  }
}
export type Entrance = ReturnType<typeof createEntrance>
