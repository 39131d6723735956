import { createHash, randomBytes } from 'node:crypto'
import { createHashQueue, type Hasher } from './hash-queue.ts'

export type { Hasher } from './hash-queue.ts'

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

/** The platform itself, at its first start. */
const PLATFORM_HASHER: Hasher = { key: '', is_known: true }

export interface Passwords {
  /** Text to store: scrypt's own header with parameters and salt, as base64. */
  hash(password: string, by?: Hasher): Promise<string>
  /** Whether the password fits. Without a stored hash it takes the same time and says no. */
  verify(password: string, stored: string | undefined, by?: Hasher): Promise<boolean>
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
  const queue = createHashQueue()
  const hash = (password: string, by = PLATFORM_HASHER) =>
    queue.run(by, async () => Buffer.from(await (await scrypt()).kdf(password, cost)).toString('base64'))
  const nobody = unmatchable(cost)
  return {
    hash,
    async verify(password, stored, by = PLATFORM_HASHER) {
      const key = stored === undefined ? nobody : Buffer.from(stored, 'base64')
      const fits = await queue.run(by, async () => (await scrypt()).verify(new Uint8Array(key), password))
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
