import { randomBytes } from 'node:crypto'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { REFRESH_GRACE_MS, sha256, unauthorized } from './authenticate.ts'
import type { SessionRepository, SessionRow } from './credentials-repository.ts'
import type { Csrf } from './csrf.ts'
import { deviceOf } from './device.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Revocations } from './revocations.ts'
import type { Told } from './told.ts'
import { TOKEN_LIFETIME_S, type Tokens } from './tokens.ts'

/** What a new session shows of its client. */
export interface Client {
  address: string
  user_agent: string
}
export interface OpenedSession {
  session_id: string
  token: string /** Value of the `session` cookie. */
  cookie: string
  max_age_s: number
}

/** Sessions that one user may have; a new one beyond it ends the oldest. */
const PER_USER = 100

export interface SessionParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  sessions: SessionRepository
  tokens: Tokens
  csrf: Csrf
  revocations: Revocations
  told: Told
}

/** Sessions: opened by a login, seen and ended by their user. */
export function createSessions({
  db,
  clock,
  audit,
  users,
  sessions,
  tokens,
  csrf,
  revocations,
  told,
}: SessionParts) {
  const expiry = () => new Date(clock.now() + TOKEN_LIFETIME_S * 1000).toISOString()
  const idOf = (actor: Actor): string => {
    if (actor.method === 'api_key')
      throw new ApiError(
        'BAD_REQUEST',
        'An API key has no session. Call this with a bearer token or a session cookie.',
      )
    return actor.credential_id
  }
  const own = (actor: Actor): SessionRow => orThrow(sessions.find(idOf(actor)), () => unauthorized())
  const announce = (user_id: string, ids: readonly string[]) => {
    for (const id of ids) {
      revocations.announce({ kind: 'session', id, user_id })
      told.session('ended', user_id, id)
    }
  }
  return {
    /** Where the user's sessions began. */
    addressesOf: sessions.addressesOf,
    /** Opens a session; `record` runs first in its transaction, and prevents it by throwing. */
    async open(user: UserRow, client: Client, record: (session_id: string) => void): Promise<OpenedSession> {
      const session_id = newId('ses')
      const cookie = randomBytes(32).toString('base64url')
      const expires_at = expiry()
      // Signed before the row is written: the token must not be handed out for a session that was never
      // stored.
      const token = await tokens.sign({
        user_id: user.id,
        role: user.role,
        session_id,
        version: 1,
        expires_at,
      })
      db.tx(() => {
        record(session_id)
        const at = clock.iso()
        sessions.insert({
          id: session_id,
          user_id: user.id,
          cookie_hash: sha256(cookie),
          token_version: 1,
          refreshed_at: null,
          address: client.address,
          user_agent: client.user_agent,
          created_at: at,
          last_used_at: at,
          expires_at,
        })
        announce(user.id, sessions.deleteBeyond(user.id, PER_USER))
        users.update(user.id, { last_login_at: at }, at)
        told.session('created', user.id, session_id)
        told.member('logged_in', user.id)
      })
      return { session_id, token, cookie, max_age_s: TOKEN_LIFETIME_S }
    },
    /**
     * A new token for the session, valid for another full lifetime. The old token counts for another minute,
     * so that requests under way do not fail; refreshing again in that minute answers the version that is
     * already new, so that two refreshes at once do not end each other.
     */
    async refresh(actor: Actor): Promise<{ token: string; expires_at: string }> {
      const session = own(actor)
      const user = orThrow(users.find(session.user_id), () => unauthorized())
      const isRecent =
        session.refreshed_at !== null &&
        Math.abs(clock.now() - Date.parse(session.refreshed_at)) < REFRESH_GRACE_MS
      const version = isRecent ? session.token_version : session.token_version + 1
      const expires_at = isRecent ? session.expires_at : expiry()
      const token = await tokens.sign({
        user_id: user.id,
        role: user.role,
        session_id: session.id,
        version,
        expires_at,
      })
      if (!isRecent && !sessions.refresh(session.id, session.token_version, clock.iso(), expires_at))
        return this.refresh(actor)
      return { token, expires_at }
    },
    csrfToken: (actor: Actor) => ({ csrf_token: csrf.tokenOf(idOf(actor)) }),
    logout(actor: Actor): void {
      const session = own(actor)
      db.tx(() => {
        sessions.delete(session.id)
        audit.record(actor, {
          action: 'session.logout',
          resource_type: 'session',
          resource_id: session.id,
          project_id: null,
        })
        announce(session.user_id, [session.id])
      })
    },
    list(actor: Actor, paging: Paging) {
      const { rows, total } = sessions.page(actor.user_id, clock.iso(), ...limits(paging))
      return paged(
        {
          total,
          rows: rows.map((row) => ({
            id: row.id,
            current: row.id === actor.credential_id,
            device: deviceOf(row.user_agent),
            address: row.address,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
          })),
        },
        paging,
      )
    },
    end(actor: Actor, id: string): void {
      const session = sessions.find(id)
      if (session?.user_id !== actor.user_id) throw notFound('session')
      db.tx(() => {
        sessions.delete(id)
        audit.record(actor, {
          action: 'session.revoke',
          resource_type: 'session',
          resource_id: id,
          project_id: null,
          before: { device: deviceOf(session.user_agent), address: session.address },
        })
        announce(session.user_id, [id])
      })
    },
    /** Ends a user's sessions besides one; call it in the transaction of what made them unsafe. */
    endOthers(user_id: string, keep = ''): number {
      const ids = sessions.deleteOthers(user_id, keep)
      announce(user_id, ids)
      return ids.length
    },
    prune: () => sessions.prune(clock.iso()),
  }
}
export type Sessions = ReturnType<typeof createSessions>
