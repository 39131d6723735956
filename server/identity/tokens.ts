import type { Clock } from '#server/kernel/clock'
import type { PlatformRole } from '#server/kernel/access'

/** What a verified token says. Whether its session still stands is asked of the database each time. */
export interface TokenClaims {
  user_id: string
  session_id: string
  version: number
  expires_s: number
}
export interface TokenSubject {
  user_id: string
  role: PlatformRole
  session_id: string
  version: number
  expires_at: string
}

export interface Tokens {
  sign(subject: TokenSubject): Promise<string>
  /**
   * The claims, or undefined for a token that is forged, expired or not an access token of this installation.
   */
  verify(token: string): Promise<TokenClaims | undefined> | TokenClaims | undefined
}

const AUDIENCE = 'portreeve'
const TYPE = 'access'
/** Lifetime of a token and of the session around it. Source: spec.md section 8. */
export const TOKEN_LIFETIME_S = 30 * 86_400
/** Verified tokens that are remembered; each costs about half a kilobyte. */
const REMEMBERED = 5_000
const MAX_TOKEN_LENGTH = 2_048

/** Loaded by the first login or token: nothing before it needs signatures. */
const jose = () => import('jose')

/**
 * Tokens signed with HS256. A verified one is remembered, because WebCrypto shares its threads with password
 * hashing: a burst of logins would make every request wait. Remembering is safe: only signature, audience and
 * type are, never the right.
 */
export function createTokens(key: Buffer, clock: Clock): Tokens {
  const remembered = new Map<string, TokenClaims>()
  const remember = (token: string, claims: TokenClaims) => {
    if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value!)
    remembered.set(token, claims)
  }
  const now_s = () => Math.floor(clock.now() / 1000)
  const check = async (token: string): Promise<TokenClaims | undefined> => {
    const { jwtVerify } = await jose()
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: ['HS256'],
        audience: AUDIENCE,
        requiredClaims: ['sub', 'iat', 'exp', 'jti', 'ver'],
        currentDate: new Date(clock.now()),
      })
      const { sub, jti, ver, typ, iat, exp } = payload
      if (typ !== TYPE || typeof ver !== 'number' || exp! - iat! > TOKEN_LIFETIME_S) return undefined
      const claims: TokenClaims = {
        user_id: sub!,
        session_id: jti!.slice(0, jti!.indexOf('.')),
        version: ver,
        expires_s: exp!,
      }
      remember(token, claims)
      return claims
    } catch {
      return undefined
    }
  }
  return {
    async sign({ user_id, role, session_id, version, expires_at }) {
      const { SignJWT } = await jose()
      return new SignJWT({ ver: version, typ: TYPE, role })
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setSubject(user_id)
        .setAudience(AUDIENCE)
        .setJti(`${session_id}.${version}`)
        .setIssuedAt(now_s())
        .setExpirationTime(Math.floor(Date.parse(expires_at) / 1000))
        .sign(key)
    },
    verify(token) {
      const known = remembered.get(token)
      if (!known) return token.length > MAX_TOKEN_LENGTH ? undefined : check(token)
      if (known.expires_s > now_s()) return known
      remembered.delete(token)
      return undefined
    },
  }
}
