import { randomBytes } from 'node:crypto'
import { type Actor, PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import { createSessionRepository } from './credentials-repository.ts'
import type { Passwords } from './passwords.ts'
import { createUserRepository, type UserRow } from './repository.ts'

/** Who has the machine has everything on it; the trail says that it was done there. */
const AT_THE_HOST: Actor = { ...PLATFORM, name: 'The command line of the host' }
const PASSWORD_BYTES = 18

/**
 * A way back in for people who lost their password or their second factor, from the terminal of the machine.
 * It works beside a running server, which reads users and sessions anew for each request.
 */
export function createWayBack(parts: { db: Db; clock: Clock; audit: AuditTrail; passwords: Passwords }) {
  const { db, clock, audit, passwords } = parts
  const users = createUserRepository(db)
  const sessions = createSessionRepository(db)
  const find = (email: string): UserRow =>
    orThrow(users.findByEmail(email.trim().toLowerCase()), () => notFound('user'))
  const note = (user: UserRow, action: string, after: Record<string, unknown>) =>
    audit.record(AT_THE_HOST, {
      action,
      resource_type: 'user',
      resource_id: user.id,
      project_id: null,
      after: { ...after, by: 'the command line of the host' },
    })
  return {
    /**
     * Gives a user a random password, which must be changed at the next login, and ends all their sessions.
     * A disabled user stays disabled.
     */
    async resetPassword(email: string): Promise<{ password: string; is_disabled: boolean; ended: number }> {
      const { id } = find(email)
      const password = randomBytes(PASSWORD_BYTES).toString('base64url')
      const password_hash = await passwords.hash(password)
      return db.tx(() => {
        const user = find(email)
        users.update(id, { password_hash, password_stale: 1 }, clock.iso())
        const ended = sessions.deleteOthers(id, '').length
        note(user, 'member.password_reset', { sessions_ended: ended })
        return { password, is_disabled: user.status === 'disabled', ended }
      })
    },
    /** Turns two-factor authentication of a user off and ends all their sessions. */
    disableTwoFactor: (email: string): { ended: number } =>
      db.tx(() => {
        const user = find(email)
        if (user.totp_seed === null && user.totp_pending === null)
          throw conflict(`Two-factor authentication of ${user.email} is off already.`)
        users.update(user.id, { totp_seed: null, totp_pending: null }, clock.iso())
        users.replaceRecoveryCodes(user.id, [])
        const ended = sessions.deleteOthers(user.id, '').length
        note(user, 'member.two_factor_reset', { two_factor_enabled: false, sessions_ended: ended })
        return { ended }
      }),
  }
}
