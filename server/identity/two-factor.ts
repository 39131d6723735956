import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '#server/kernel/clock'
import { conflict } from '#server/kernel/errors'
import type { Secrets } from '#server/kernel/secrets'
import type { UserRepository, UserRow } from './repository.ts'

/** Few requests need codes, so that the library is loaded by the first. */
const codes = () => import('otplib')

const STEP_S = 30
/** Clocks of phones and servers differ by less than one step. */
const TOLERANCE_S = STEP_S
const SEED_BYTES = 20
const RECOVERY_CODES = 10
const ALPHABET = '23456789abcdefghjkmnpqrstvwxyz'
const ISSUER = 'Portreeve'

export interface TwoFactor {
  /** Whether a code fits, and uses it up: a time step and a recovery code count once. */
  use(user: UserRow, code: string): Promise<boolean>
  /** Starts enrolment: a new seed that counts once its first code was shown. */
  prepare(user: UserRow): Promise<{ secret: string; otpauth_url: string }>
  /** Whether the code belongs to the prepared seed; uses up its step. */
  usePrepared(user: UserRow, code: string): Promise<boolean>
  /** Replaces the recovery codes; they are in this answer only. */
  renewRecoveryCodes(user_id: string): string[]
}

/** Where the seed of a user is sealed for. */
export const seedContext = (user_id: string, column: 'totp_seed' | 'totp_pending') =>
  `users/${column}/${user_id}`
const normal = (code: string) => code.toLowerCase().replace(/[\s-]/g, '')
const hashOf = (user_id: string, code: string) =>
  createHash('sha256').update(`${user_id}/${code}`).digest('base64url')

function recoveryCode(): string {
  let text = ''
  while (text.length < 16) {
    // Bytes beyond the last whole multiple of the alphabet would make some characters likelier.
    for (const byte of randomBytes(16))
      if (byte < 240 && text.length < 16) text += ALPHABET[byte % ALPHABET.length]
  }
  return text.match(/.{4}/g)!.join('-')
}

/**
 * Time-based one-time passwords (RFC 6238) with recovery codes. Seeds are sealed at rest, codes are used
 * once.
 */
export function createTwoFactor(options: {
  clock: Clock
  secrets: Secrets
  users: UserRepository
}): TwoFactor {
  const { clock, secrets, users } = options
  const fits = async (
    user: UserRow,
    column: 'totp_seed' | 'totp_pending',
    code: string,
  ): Promise<boolean> => {
    const sealed = user[column]
    if (sealed === null || !/^\d{6}$/.test(code)) return false
    const { verify } = await codes()
    const epoch = Math.floor(clock.now() / 1000)
    const result = await verify({
      secret: secrets.open(sealed, seedContext(user.id, column)),
      token: code,
      epoch,
      period: STEP_S,
      epochTolerance: TOLERANCE_S,
    })
    return result.valid && users.takeTotpStep(user.id, Math.floor(epoch / STEP_S) + result.delta)
  }
  return {
    async use(user, given) {
      const code = normal(given)
      if (/^\d{6}$/.test(code)) return fits(user, 'totp_seed', code)
      return users.takeRecoveryCode(user.id, hashOf(user.id, code))
    },
    async prepare(user) {
      const { generateSecret, generateURI } = await codes()
      if (user.totp_seed !== null)
        throw conflict('Two-factor authentication is on already. Turn it off first to use another device.')
      const secret = generateSecret({ length: SEED_BYTES })
      users.update(
        user.id,
        { totp_pending: secrets.seal(secret, seedContext(user.id, 'totp_pending')) },
        clock.iso(),
      )
      return { secret, otpauth_url: generateURI({ issuer: ISSUER, label: user.email, secret }) }
    },
    usePrepared: (user, code) => fits(user, 'totp_pending', normal(code)),
    renewRecoveryCodes(user_id) {
      const fresh = Array.from({ length: RECOVERY_CODES }, recoveryCode)
      users.replaceRecoveryCodes(
        user_id,
        fresh.map((code) => hashOf(user_id, normal(code))),
      )
      return fresh
    },
  }
}
