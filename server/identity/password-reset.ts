import { randomBytes } from 'node:crypto'
import { type Actor, PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import { momentOf } from '#server/kernel/sentences'
import type { Mail } from '#server/platform/mail/mail'
import { sha256 } from './authenticate.ts'
import { type LoginLimit, peerOf } from './login-limit.ts'
import { weaknessOf } from './password-rules.ts'
import type { PasswordResetBody, PasswordResetLink } from './password-reset-schema.ts'
import type { Passwords } from './passwords.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Revocations } from './revocations.ts'
import type { Sessions } from './sessions.ts'

const ASKED_LIFETIME_MS = 3_600_000
const GIVEN_LIFETIME_MS = 24 * 3_600_000
/** A second mail to the same person within this time is not sent. */
const PAUSE_MS = 60_000

interface ResetRow {
  user_id: string
  token_hash: string
  created_at: string
  expires_at: string
}
export interface PasswordResetParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  sessions: Sessions
  passwords: Passwords
  revocations: Revocations
  limit: LoginLimit
  mail: Mail
  /** Where people reach the dashboard. */
  public_url(): string
  /** Sends a message after the commit, in the background. */
  tell(email: string, subject: string, text: string): void
}

/** SQL of links that set a password. */
const createRepository = (db: Db) => ({
  newest: (user_id: string) =>
    db.sql('SELECT * FROM password_resets WHERE user_id = ? ORDER BY rowid DESC LIMIT 1').get(user_id) as
      | ResetRow
      | undefined,
  findByToken: (token_hash: string) =>
    db.sql('SELECT * FROM password_resets WHERE token_hash = ?').get(token_hash) as ResetRow | undefined,
  insert: (row: ResetRow) =>
    db
      .sql(
        `INSERT INTO password_resets (user_id, token_hash, created_at, expires_at)
         VALUES (@user_id, @token_hash, @created_at, @expires_at)`,
      )
      .run(row),
  take: (token_hash: string): boolean =>
    db.sql('DELETE FROM password_resets WHERE token_hash = ?').run(token_hash).changes === 1,
  prune: (now: string) => forgetSome(db, { table: 'password_resets', where: 'expires_at <= ?' }, now),
})

/**
 * A way back in for who has lost their password: a link, by mail or from an administrator, that counts once.
 * The second factor stays what it is. A link holds until the password is another: anybody may ask for one, which
 * would end the one that its owner is about to use.
 */
export function createPasswordReset(parts: PasswordResetParts) {
  const { db, clock, audit, users, passwords, limit, mail } = parts
  const resets = createRepository(db)
  const make = (user: UserRow, lifetime_ms: number) => {
    const token = randomBytes(32).toString('base64url')
    const expires_at = new Date(clock.now() + lifetime_ms).toISOString()
    resets.insert({ user_id: user.id, token_hash: sha256(token), created_at: clock.iso(), expires_at })
    // In the fragment, which browsers keep to themselves: it reaches no log and no Referer.
    return { token, link: `${parts.public_url()}/reset-password#${token}`, expires_at }
  }
  const note = (actor: Actor, action: string, user_id: string, after?: Record<string, unknown>) =>
    audit.record(actor, {
      action,
      resource_type: 'user',
      resource_id: user_id,
      project_id: null,
      ...(after ? { after } : {}),
    })
  const textOf = (link: string, expires_at: string) =>
    `This link sets a new password for your account:\n\n${link}\n\nIt works once, until ${momentOf(expires_at)}. If you did not ask for it, ignore this message.`
  const somebody = (client: { address: string; id: string }): Actor => ({
    ...PLATFORM,
    method: 'none' as Actor['method'],
    address: client.address,
    request_id: client.id,
  })
  return {
    /**
     * Sends a link to the address, if it is somebody's; the answer does not tell. Throws 409 without a mail
     * server, and RATE_LIMITED for one request too many.
     */
    ask(email: string, client: { address: string; id: string }): void {
      if (!mail.isConfigured())
        throw conflict(
          'No mail server is configured. Ask an administrator for a new password, or run `portreeve reset-password` on the server.',
        )
      limit.attempt(client.address)
      const user = users.findByEmail(email.trim().toLowerCase())
      if (user?.status !== 'active') return
      const last = resets.newest(user.id)?.created_at
      // One that lies ahead was asked for under a clock that was wrong.
      if (last !== undefined && Math.abs(clock.now() - Date.parse(last)) < PAUSE_MS) return
      db.tx(() => {
        const { link, expires_at } = make(user, ASKED_LIFETIME_MS)
        note(somebody(client), 'account.password_reset_ask', user.id)
        parts.tell(user.email, 'Set a new password', textOf(link, expires_at))
      })
    },
    /**
     * A link for a member, by an administrator: the old password stops at once, and all sessions end. It goes
     * out by mail; what cannot be sent is shown to the administrator, once.
     */
    async give(actor: Actor, id: string): Promise<PasswordResetLink> {
      const user = users.find(id)
      if (!user) throw notFound('member')
      const password_hash = await passwords.hash(randomBytes(32).toString('base64url'))
      const { token, link, expires_at } = db.tx(() => {
        if (!users.find(id)) throw notFound('member')
        users.update(id, { password_hash }, clock.iso())
        const ended = parts.sessions.endOthers(id)
        parts.revocations.announce({ kind: 'user', user_id: id })
        note(actor, 'member.password_reset', id, { sessions_ended: ended })
        return make(user, GIVEN_LIFETIME_MS)
      })
      const shown = (reason: string) => ({ sent: false, link, token, expires_at, reason })
      if (!mail.isConfigured()) return shown('No mail server is configured. Hand this link over yourself.')
      try {
        await mail.send({
          to: user.email,
          subject: 'Set a new password',
          text: `An administrator has reset your password. ${textOf(link, expires_at)}\n\nPortreeve\n`,
        })
        return { sent: true, link: null, token: null, expires_at, reason: null }
      } catch (error) {
        return shown(`${(error as Error).message} Hand this link over yourself.`)
      }
    },
    /** Sets the password of whom the link belongs to, and ends all their sessions. */
    async use(given: PasswordResetBody, client: { address: string; id: string }): Promise<string> {
      limit.attempt(client.address)
      const hash = sha256(given.token)
      const row = resets.findByToken(hash)
      const user = row && row.expires_at > clock.iso() ? users.find(row.user_id) : undefined
      if (user?.status !== 'active') throw notFound('password reset')
      const weakness = weaknessOf(given.new_password, user)
      if (weakness) throw invalid('new_password', weakness)
      const password_hash = await passwords.hash(given.new_password, {
        key: peerOf(client.address),
        is_known: false,
      })
      db.tx(() => {
        const is_open = users.find(user.id)?.status === 'active'
        if (!resets.take(hash) || !is_open) throw notFound('password reset')
        users.update(user.id, { password_hash, password_stale: 0 }, clock.iso())
        const ended = parts.sessions.endOthers(user.id)
        parts.revocations.announce({ kind: 'user', user_id: user.id })
        note(somebody(client), 'account.password_reset', user.id, { sessions_ended: ended })
        parts.tell(
          user.email,
          'Your password was changed',
          'A new password was set for your account with a link that was sent to you, and your sessions were ended. If this was not you, tell your administrator at once.',
        )
      })
      return user.email
    },
    prune: () => resets.prune(clock.iso()),
  }
}
export type PasswordReset = ReturnType<typeof createPasswordReset>
