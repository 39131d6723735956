import { createHash, randomBytes } from 'node:crypto'
import { ApiError } from '#server/kernel/errors'

/** What scrypt-kdf 4 really exports; its own type file describes functions that are not there. */
interface ScryptKdf {
  kdf(passphrase: string, params: Cost): Promise<Uint8Array>
  verify(key: Uint8Array, passphrase: string): Promise<boolean>
}
/** Loaded by the first password. */
const scrypt = async (): Promise<ScryptKdf> =>
  ((await import('scrypt-kdf')) as unknown as { default: ScryptKdf }).default

/** Cost of one hash: `2^logN` blocks of `128 r` bytes, `p` times. */
export interface Cost {
  logN: number
  r: number
  p: number
}
/** 32 MiB and about 0.2 s: one of the sets of equal strength that the OWASP password storage page names. */
export const COST: Cost = { logN: 15, r: 8, p: 3 }

/** Hashes at once. Each holds one of the four threads that files, names and signatures need as well. */
const AT_ONCE = 2
/**
 * Callers that may wait for their turn; more are told to come back, because the wait would be longer than
 * they have patience.
 */
const MAX_WAITING = 40

export interface Passwords {
  /** Text to store: scrypt's own header with parameters and salt, as base64. */
  hash(password: string): Promise<string>
  /** Whether the password fits. Without a stored hash it takes the same time and says no. */
  verify(password: string, stored: string | undefined): Promise<boolean>
  /** Whether a stored hash was made at another cost than today's. */
  isOutdated(stored: string): boolean
}

/**
 * A hash that no password fits, for callers whom nobody knows: a right header and salt, so that comparing
 * takes its full time.
 */
function unmatchable(cost: Cost): Buffer {
  const key = Buffer.alloc(96)
  key.write('scrypt')
  key[7] = cost.logN
  key.writeUInt32BE(cost.r, 8)
  key.writeUInt32BE(cost.p, 12)
  randomBytes(32).copy(key, 16)
  createHash('sha256').update(key.subarray(0, 48)).digest().copy(key, 48, 0, 16)
  randomBytes(32).copy(key, 64)
  return key
}

/** Password hashing off the event loop, a few at a time. */
export function createPasswords(cost: Cost = COST): Passwords {
  let free = AT_ONCE
  const waiting: (() => void)[] = []
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1
    else {
      if (waiting.length >= MAX_WAITING)
        throw new ApiError(
          'RATE_LIMITED',
          'Too many logins at once. Try again in a few seconds.',
          undefined,
          5,
        )
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
  const hash = (password: string) =>
    inTurn(async () => Buffer.from(await (await scrypt()).kdf(password, cost)).toString('base64'))
  const nobody = unmatchable(cost)
  return {
    hash,
    async verify(password, stored) {
      const key = stored === undefined ? nobody : Buffer.from(stored, 'base64')
      const fits = await inTurn(async () => (await scrypt()).verify(new Uint8Array(key), password))
      return fits && stored !== undefined
    },
    isOutdated(stored) {
      const header = Buffer.from(stored, 'base64')
      return (
        header[7] !== cost.logN || header.readUInt32BE(8) !== cost.r || header.readUInt32BE(12) !== cost.p
      )
    },
  }
}
