import { randomInt } from 'node:crypto'
import { ApiError } from '#server/kernel/errors'

/** Who waits for a hash. */
export interface Hasher {
  /** Address or user whose turns are counted together. */
  key: string
  /** Whether they were let in before: a session that is open, or one that began at the same address. */
  is_known: boolean
}

/** Hashes at once. Each holds one of the four threads that files, names and signatures need as well. */
const AT_ONCE = 2
/** Callers that may wait, known and unknown ones each: more would lose their patience. */
const MAX_WAITING = 40
/** Of one address or user. */
const MAX_WAITING_OF_ONE = 4
/** While both kinds wait, every so many turns one is for somebody unknown. */
const TURNS_OF_KNOWN = 3

interface Waiting {
  key: string
  begin(): void
  refuse(): void
}

const tooMany = () =>
  new ApiError('RATE_LIMITED', 'Too many logins at once. Try again in a few seconds.', undefined, 5)

/**
 * Turns at hashing. Those who were let in before wait in a line of their own, which somebody who changes
 * addresses cannot fill. In the other line, when it is full, whoever comes takes the place of one who waits,
 * by lot: nobody can keep all places.
 */
export function createHashQueue() {
  let free = AT_ONCE
  let turns_of_known = 0
  const known: Waiting[] = []
  const unknown: Waiting[] = []
  const next = (): Waiting | undefined => {
    const is_turn_of_unknown = known.length === 0 || turns_of_known >= TURNS_OF_KNOWN
    if (is_turn_of_unknown && unknown.length > 0) {
      turns_of_known = 0
      return unknown.shift()
    }
    turns_of_known += 1
    return known.shift()
  }
  const wait = ({ key, is_known }: Hasher) =>
    new Promise<void>((resolve, reject) => {
      const line = is_known ? known : unknown
      if (line.filter((one) => one.key === key).length >= MAX_WAITING_OF_ONE) return reject(tooMany())
      const own: Waiting = { key, begin: resolve, refuse: () => reject(tooMany()) }
      if (line.length < MAX_WAITING) return void line.push(own)
      if (is_known) return own.refuse()
      const [displaced] = line.splice(randomInt(line.length), 1)
      line.push(own)
      return displaced!.refuse()
    })
  return {
    async run<T>(by: Hasher, work: () => Promise<T>): Promise<T> {
      if (free > 0) free -= 1
      else await wait(by)
      try {
        return await work()
      } finally {
        const following = next()
        if (following) following.begin()
        else free += 1
      }
    },
  }
}
