import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, invalid } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import { unauthorized } from './authenticate.ts'
import type { InitialPassword } from './first-administrator.ts'
import { accountKey, type LoginLimit } from './login-limit.ts'
import { weaknessOf } from './password-rules.ts'
import type { Hasher, Passwords } from './passwords.ts'
import { permissionsOf } from './permissions.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Revocations } from './revocations.ts'
import type { Me, MeChange } from './schema.ts'
import type { Sessions } from './sessions.ts'
import type { Told } from './told.ts'
import type { TwoFactor } from './two-factor.ts'

export interface AccountParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  sessions: Sessions
  passwords: Passwords
  two_factor: TwoFactor
  limit: LoginLimit
  revocations: Revocations
  told: Told
  initial_password: InitialPassword
  /** Whether somebody was invited under an address and may still come. */
  isInvited(email: string): boolean
  /** Throws UNAUTHORIZED when the session, key or account of a caller has ended meanwhile. */
  requireStanding(actor: Actor): void
  /** Projects that an actor may see, with the role in each. */
  projectsOf(actor: Actor): Me['projects']
  /** Tells the owner of an address about a change of their account, after the commit. */
  tell(email: string, subject: string, text: string): void
}
/** What a caller must show again before a change that a stolen session must not be able to make. */
export interface StepUp {
  password?: string
  totp_code?: string
}

/** Somebody who is logged in already. */
const insider = ({ id }: UserRow): Hasher => ({ key: id, is_known: true })

/**
 * Whoever is logged in is told what was wrong: they know that the account is there, and that a password is right shows
 * in the question for a code.
 */
const notConfirmed = (what: 'password' | 'code') =>
  new ApiError(
    'INVALID_CREDENTIALS',
    what === 'password' ? 'This is not your password.' : 'The code is wrong, or was used before.',
  )

/** The account of the caller: what they see of themselves and may change. */
export function createAccount(parts: AccountParts) {
  const { db, clock, audit, users, sessions, passwords, two_factor, limit } = parts
  const own = (actor: Actor): UserRow => orThrow(users.find(actor.user_id), () => unauthorized())
  const stepUp = async (actor: Actor, user: UserRow, proof: StepUp, path: string): Promise<void> => {
    if (proof.password === undefined)
      throw invalid(path, 'is required: confirm this change with your password.')
    limit.requireFree(accountKey.insider(user.id))
    const fits = await passwords.verify(proof.password, user.password_hash, insider(user))
    if (fits && user.totp_seed !== null && !proof.totp_code)
      throw new ApiError(
        'TOTP_REQUIRED',
        'Two-factor authentication is on. Send totp_code with your password.',
      )
    if (fits && (user.totp_seed === null || (await two_factor.use(user, proof.totp_code!)))) {
      parts.requireStanding(actor)
      if (!users.isAsProven(user)) throw notConfirmed('password')
      return limit.succeeded(accountKey.insider(user.id))
    }
    limit.failed(accountKey.insider(user.id), actor.address)
    audit.record(actor, {
      action: 'account.confirmation_failed',
      resource_type: 'user',
      resource_id: user.id,
      project_id: null,
    })
    throw notConfirmed(fits ? 'code' : 'password')
  }
  return {
    own,
    /**
     * Checks password and, when it is on, the second factor, of a caller who is logged in already. Throws
     * INVALID_CREDENTIALS.
     */
    stepUp,
    me(actor: Actor): Me {
      const user = own(actor)
      return {
        id: user.id,
        email: user.email,
        name: user.name,
        role: user.role,
        two_factor_enabled: user.totp_seed !== null,
        recovery_codes_left: users.recoveryCodesLeft(user.id),
        password_change_required: user.password_stale === 1,
        preferences: JSON.parse(user.preferences) as Me['preferences'],
        created_at: user.created_at,
        permissions: permissionsOf(actor),
        projects: parts.projectsOf(actor),
      }
    },
    async change(actor: Actor, change: MeChange): Promise<Me> {
      const before = own(actor)
      const email = change.email !== undefined && change.email !== before.email ? change.email : undefined
      if (email !== undefined)
        await stepUp(
          actor,
          before,
          { password: change.current_password, totp_code: change.totp_code },
          'current_password',
        )
      db.tx(() => {
        if (email !== undefined && (users.findByEmail(email) || parts.isInvited(email)))
          throw conflict('This e-mail address cannot be used. Choose another one.')
        users.update(
          before.id,
          {
            email,
            name: change.name,
            preferences: change.preferences && JSON.stringify(change.preferences),
          },
          clock.iso(),
        )
        const now = own(actor)
        if (now.name === before.name && email === undefined) return
        audit.record(actor, {
          action: 'account.update',
          resource_type: 'user',
          resource_id: before.id,
          project_id: null,
          before: { name: before.name, email: before.email },
          after: { name: now.name, email: now.email },
        })
        parts.told.member('updated', before.id)
      })
      if (email !== undefined)
        parts.tell(
          before.email,
          'The e-mail address of your account was changed',
          `Your account now uses ${email}. If this was not you, tell your administrator at once.`,
        )
      return this.me(actor)
    },
    /** Sets a new password and ends every other session; the session that changed it goes on. */
    async changePassword(
      actor: Actor,
      { current_password, new_password }: { current_password: string; new_password: string },
    ): Promise<number> {
      const user = own(actor)
      limit.requireFree(accountKey.insider(user.id))
      if (!(await passwords.verify(current_password, user.password_hash, insider(user)))) {
        limit.failed(accountKey.insider(user.id), actor.address)
        audit.record(actor, {
          action: 'account.password_change_failed',
          resource_type: 'user',
          resource_id: user.id,
          project_id: null,
        })
        throw notConfirmed('password')
      }
      limit.succeeded(accountKey.insider(user.id))
      if (current_password === new_password)
        throw invalid('new_password', 'must differ from the current password.')
      const weakness = weaknessOf(new_password, user)
      if (weakness) throw invalid('new_password', weakness)
      const password_hash = await passwords.hash(new_password, insider(user))
      const ended = db.tx(() => {
        parts.requireStanding(actor)
        // The hash that was verified must still be the one in place: two changes at once must not both
        // succeed.
        if (own(actor).password_hash !== user.password_hash)
          throw conflict('The password was changed by another request meanwhile.')
        users.update(user.id, { password_hash, password_stale: 0 }, clock.iso())
        audit.record(actor, {
          action: 'account.password_change',
          resource_type: 'user',
          resource_id: user.id,
          project_id: null,
        })
        return sessions.endOthers(user.id, actor.method === 'api_key' ? '' : actor.credential_id)
      })
      parts.initial_password.forget(user.id)
      parts.tell(
        user.email,
        'Your password was changed',
        'The password of your account was changed, and your other sessions were ended. If this was not you, tell your administrator at once.',
      )
      return ended
    },
  }
}
export type Account = ReturnType<typeof createAccount>
