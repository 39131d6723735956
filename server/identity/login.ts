import { PLATFORM, type Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'
import { accountKey, type LoginLimit, peerOf } from './login-limit.ts'
import type { Passwords } from './passwords.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { User } from './schema.ts'
import type { Client, OpenedSession, Sessions } from './sessions.ts'
import type { TwoFactor } from './two-factor.ts'

export interface LoginAttempt {
  email: string
  password: string
  totp_code?: string
}
export interface LoginParts {
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  sessions: Sessions
  passwords: Passwords
  limit: LoginLimit
  two_factor: TwoFactor
}

/** The one answer to a wrong address, a wrong password, a disabled account and a wrong code. */
export const wrongCredentials = () =>
  new ApiError('INVALID_CREDENTIALS', 'E-mail address, password or code is wrong.')
export const userOf = ({ id, email, name, role }: UserRow): User => ({ id, email, name, role })

/**
 * Logging in: limited first, then the password, then the second factor; nothing tells which addresses have an
 * account.
 */
export function createLogin({ clock, audit, users, sessions, passwords, limit, two_factor }: LoginParts) {
  const note = (
    action: string,
    user: UserRow | undefined,
    client: Client & { id: string },
    after: Record<string, unknown>,
    by: Partial<Actor> = {},
  ) =>
    audit.record(
      {
        ...PLATFORM,
        method: 'none' as Actor['method'],
        address: client.address,
        request_id: client.id,
        ...by,
      },
      {
        action,
        resource_type: 'user',
        resource_id: user?.id ?? null,
        project_id: null,
        after,
      },
    )
  const fail = (
    account: string,
    user: UserRow | undefined,
    client: Client & { id: string },
    reason: string,
  ): never => {
    limit.failed(account)
    note('login.failed', user, client, { reason })
    throw wrongCredentials()
  }
  return async (
    given: LoginAttempt,
    client: Client & { id: string },
  ): Promise<OpenedSession & { user: User }> => {
    const attempt = { ...given, email: given.email.trim().toLowerCase() }
    limit.attempt(client.address)
    const user = users.findByEmail(attempt.email)
    const peer = peerOf(client.address)
    const is_known = user !== undefined && sessions.addressesOf(user.id).some((one) => peerOf(one) === peer)
    const account = is_known ? accountKey.known(attempt.email, peer) : accountKey.stranger(attempt.email)
    limit.requireFree(account)
    const hasher = { key: peer, is_known }
    const fits = await passwords.verify(attempt.password, user?.password_hash, hasher)
    if (!user || !fits) return fail(account, user, client, 'wrong_credentials')
    if (user.status !== 'active') return fail(account, user, client, 'disabled')
    if (user.totp_seed !== null) {
      if (!attempt.totp_code) {
        note('login.second_factor_asked', user, client, {})
        throw new ApiError(
          'TOTP_REQUIRED',
          'Two-factor authentication is on. Send totp_code with the same e-mail address and password.',
        )
      }
      if (!(await two_factor.use(user, attempt.totp_code))) return fail(account, user, client, 'wrong_code')
    }
    const password_hash = passwords.isOutdated(user.password_hash)
      ? await passwords.hash(attempt.password, hasher)
      : undefined
    const opened = await sessions.open(user, client, (session_id) => {
      if (!users.isAsProven(user)) throw wrongCredentials()
      if (password_hash !== undefined) users.update(user.id, { password_hash }, clock.iso())
      note(
        'login.succeeded',
        user,
        client,
        { two_factor: user.totp_seed !== null },
        { user_id: user.id, email: user.email, method: 'bearer', credential_id: session_id },
      )
    })
    limit.succeeded(account)
    return { ...opened, user: userOf(user) }
  }
}
export type Login = ReturnType<typeof createLogin>
