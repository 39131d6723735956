import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, forbidden, invalid } from '#server/kernel/errors'
import type { Secrets } from '#server/kernel/secrets'
import type { Account, StepUp } from './account.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Sessions } from './sessions.ts'
import type { Told } from './told.ts'
import { seedContext, type TwoFactor } from './two-factor.ts'

export interface SecondFactorParts {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  users: UserRepository
  sessions: Sessions
  account: Account
  two_factor: TwoFactor
  told: Told
  tell(email: string, subject: string, text: string): void
}

/** Turning two-factor authentication on and off for the caller's own account. */
export function createSecondFactor(parts: SecondFactorParts) {
  const { db, clock, secrets, audit, users, sessions, account, two_factor } = parts
  /** A leaked key must not be able to lock its owner out. */
  const owner = (actor: Actor): UserRow => {
    if (actor.method === 'api_key')
      throw forbidden('An API key cannot change how its owner logs in. Log in to do this.')
    return account.own(actor)
  }
  const note = (actor: Actor, action: string) =>
    audit.record(actor, {
      action,
      resource_type: 'user',
      resource_id: actor.user_id,
      project_id: null,
    })
  const enrolled = (actor: Actor): UserRow => {
    const user = owner(actor)
    if (user.totp_seed === null) throw conflict('Two-factor authentication is off.')
    return user
  }
  return {
    async setup(actor: Actor) {
      const { renderSVG } = await import('uqr')
      const { secret, otpauth_url } = await two_factor.prepare(owner(actor))
      note(actor, 'two_factor.setup')
      return { secret, otpauth_url, qr_svg: renderSVG(otpauth_url, { border: 2 }) }
    },
    /** Ends the other sessions: they were opened without a second factor. */
    async enable(actor: Actor, code: string): Promise<string[]> {
      const user = owner(actor)
      if (user.totp_seed !== null) throw conflict('Two-factor authentication is on already.')
      if (user.totp_pending === null) throw conflict('Start with POST /api/auth/2fa/setup and scan its code.')
      if (!(await two_factor.usePrepared(user, code)))
        throw invalid(
          'totp_code',
          'is not the code that the app shows now. Check the clock of your phone and try again.',
        )
      return db.tx(() => {
        if (owner(actor).totp_pending !== user.totp_pending)
          throw conflict('The enrolment was started again meanwhile. Scan the newest code.')
        const seed = secrets.open(user.totp_pending!, seedContext(user.id, 'totp_pending'))
        users.update(
          user.id,
          { totp_seed: secrets.seal(seed, seedContext(user.id, 'totp_seed')), totp_pending: null },
          clock.iso(),
        )
        sessions.endOthers(user.id, actor.credential_id)
        note(actor, 'two_factor.enable')
        parts.told.member('updated', user.id)
        parts.tell(
          user.email,
          'Two-factor authentication was turned on',
          'From now on your account asks for a code at each login. If this was not you, tell your administrator at once.',
        )
        return two_factor.renewRecoveryCodes(user.id)
      })
    },
    async disable(actor: Actor, proof: StepUp): Promise<void> {
      const user = enrolled(actor)
      await account.stepUp(actor, user, proof, 'password')
      db.tx(() => {
        users.update(user.id, { totp_seed: null, totp_pending: null }, clock.iso())
        users.replaceRecoveryCodes(user.id, [])
        sessions.endOthers(user.id, actor.credential_id)
        note(actor, 'two_factor.disable')
        parts.told.member('updated', user.id)
      })
      parts.tell(
        user.email,
        'Two-factor authentication was turned off',
        'Your account no longer asks for a code. If this was not you, tell your administrator at once.',
      )
    },
    async renewRecoveryCodes(actor: Actor, proof: StepUp): Promise<string[]> {
      const user = enrolled(actor)
      await account.stepUp(actor, user, proof, 'password')
      return db.tx(() => {
        note(actor, 'two_factor.recovery_codes_renew')
        return two_factor.renewRecoveryCodes(user.id)
      })
    },
  }
}
export type SecondFactorAccount = ReturnType<typeof createSecondFactor>
