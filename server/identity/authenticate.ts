import { hash, timingSafeEqual } from 'node:crypto'
import type { Actor, Credentials, ProjectRole } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'
import { compileNetworks } from '#server/kernel/networks'
import type { ApiKeyRepository, ApiKeyRow, SessionRepository, SessionRow } from './credentials-repository.ts'
import type { Csrf } from './csrf.ts'
import type { TicketHolder, Tickets } from './one-time-tickets.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Tokens } from './tokens.ts'

/** Where the request comes from. */
export interface Source {
  address: string
  id: string
}

export interface Authentication {
  /**
   * Who the proof belongs to. Throws UNAUTHORIZED, CSRF_INVALID or, unless allowed, PASSWORD_CHANGE_REQUIRED.
   */
  authenticate(
    proof: Credentials,
    source: Source,
    options: { allow_stale_password: boolean },
  ): Promise<Actor> | Actor
  /**
   * The same for the opening of a WebSocket: a one-use ticket counts as well, and a cookie needs the same
   * Origin.
   */
  authenticateUpgrade(proof: Credentials & { ticket?: string }, source: Source): Promise<Actor> | Actor
  /**
   * The caller as they are now, for a connection that stays open. Throws UNAUTHORIZED when session, key or
   * user have ended.
   */
  actorOf(holder: TicketHolder, source: Source): Actor
}

export interface AuthenticationParts {
  clock: Clock
  users: UserRepository
  sessions: SessionRepository
  keys: ApiKeyRepository
  tokens: Tokens
  csrf: Csrf
  tickets: Tickets
  /** Project roles of a user. */
  rolesOf(user_id: string): { project_id: string; role: ProjectRole }[]
}

/** Requests under way with the token of before may still arrive for so long after a refresh. */
export const REFRESH_GRACE_MS = 60_000
/** How often at most the last use of a session or key is written. */
const TOUCH_MS = 60_000
const API_KEY = /^ptr_([0-9a-hjkmnp-tv-z]{20})_([0-9a-hjkmnp-tv-z]{40})$/

export const unauthorized = () => new ApiError('UNAUTHORIZED', 'Log in, or send a valid token or API key.')
export const sha256 = (text: string): string => hash('sha256', text, 'base64url')

/** Whether a token of this version still counts for the session. */
export function acceptsVersion(session: SessionRow, version: number, now: number): boolean {
  if (version === session.token_version) return true
  return (
    version === session.token_version - 1 &&
    session.refreshed_at !== null &&
    now - Date.parse(session.refreshed_at) < REFRESH_GRACE_MS
  )
}

const allowsAddress = (key: ApiKeyRow, address: string): boolean =>
  key.addresses === null || compileNetworks(JSON.parse(key.addresses) as string[])(address)

/**
 * Turns proofs into actors. Users, sessions, keys and roles are read anew each time, so that a change holds
 * from the next request on.
 */
export function createAuthentication(parts: AuthenticationParts): Authentication {
  const { clock, users, sessions, keys, tokens, csrf, tickets } = parts
  const isDue = (last: string | null) => last === null || clock.now() - Date.parse(last) >= TOUCH_MS

  const activeUser = (id: string): UserRow => {
    const user = users.find(id)
    if (user?.status !== 'active') throw unauthorized()
    return user
  }
  const liveSession = (session: SessionRow | undefined): SessionRow => {
    if (!session || Date.parse(session.expires_at) <= clock.now()) throw unauthorized()
    if (isDue(session.last_used_at)) sessions.touch(session.id, clock.iso())
    return session
  }
  const actor = (
    user: UserRow,
    method: Actor['method'],
    credential_id: string,
    source: Source,
    key?: ApiKeyRow,
  ): Actor => ({
    user_id: user.id,
    email: user.email,
    name: user.name,
    role: user.role,
    method,
    credential_id,
    scope: key?.scope ?? 'full',
    projects: new Map(parts.rolesOf(user.id).map(({ project_id, role }) => [project_id, role])),
    ...(key?.project_ids ? { only_projects: new Set(JSON.parse(key.project_ids) as string[]) } : {}),
    address: source.address,
    request_id: source.id,
  })
  const liveKey = (id: string, source: Source, secret?: string): ApiKeyRow => {
    const key = keys.find(id)
    const stored = Buffer.from(key?.secret_hash ?? sha256(''))
    const matches = secret === undefined || timingSafeEqual(stored, Buffer.from(sha256(secret)))
    if (
      !key ||
      !matches ||
      (key.expires_at !== null && Date.parse(key.expires_at) <= clock.now()) ||
      !allowsAddress(key, source.address)
    )
      throw unauthorized()
    if (isDue(key.last_used_at)) keys.touch(key.id, clock.iso(), source.address)
    return key
  }

  const byToken = async (header: string, source: Source): Promise<[Actor, UserRow]> => {
    if (API_KEY.test(header.replace(/^Bearer +/i, '')))
      throw new ApiError('UNAUTHORIZED', 'This is an API key. Send it in the header X-API-Key.')
    const token = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header)?.[1]
    const claims = token ? await tokens.verify(token) : undefined
    if (!claims) throw unauthorized()
    const session = liveSession(sessions.find(claims.session_id))
    if (session.user_id !== claims.user_id || !acceptsVersion(session, claims.version, clock.now()))
      throw unauthorized()
    const user = activeUser(session.user_id)
    return [actor(user, 'bearer', session.id, source), user]
  }
  const byKey = (text: string, source: Source): [Actor, UserRow] => {
    const [, id, secret] = API_KEY.exec(text) ?? []
    if (!id || !secret) throw unauthorized()
    const key = liveKey(`key_${id}`, source, secret)
    const user = activeUser(key.user_id)
    return [actor(user, 'api_key', key.id, source, key), user]
  }
  const byCookie = (value: string, source: Source): [Actor, UserRow, SessionRow] => {
    const session = liveSession(sessions.findByCookie(sha256(value)))
    const user = activeUser(session.user_id)
    return [actor(user, 'cookie', session.id, source), user, session]
  }

  const actorOf: Authentication['actorOf'] = (holder, source) => {
    const key = holder.method === 'api_key' ? liveKey(holder.credential_id, source) : undefined
    if (!key) liveSession(sessions.find(holder.credential_id))
    return actor(activeUser(holder.user_id), holder.method, holder.credential_id, source, key)
  }
  return {
    actorOf,
    async authenticate(proof, source, { allow_stale_password }) {
      let found: [Actor, UserRow, SessionRow?]
      if (proof.authorization !== undefined) found = await byToken(proof.authorization, source)
      else if (proof.api_key !== undefined) found = byKey(proof.api_key, source)
      else if (proof.session) found = byCookie(proof.session, source)
      else throw unauthorized()
      const [who, user, session] = found
      if (session && proof.mutating) csrf.check(session.id, proof.csrf_token, proof)
      if (user.password_stale === 1 && !allow_stale_password)
        throw new ApiError(
          'PASSWORD_CHANGE_REQUIRED',
          'Change the generated first password with PUT /api/auth/password, then go on.',
        )
      return who
    },
    async authenticateUpgrade(proof, source) {
      if (proof.ticket !== undefined) {
        const holder = tickets.redeem(proof.ticket)
        if (!holder) throw unauthorized()
        return actorOf(holder, source)
      }
      const cookie_only = proof.authorization === undefined && proof.api_key === undefined
      if (cookie_only && proof.session && !csrf.isSameOrigin(proof))
        throw new ApiError(
          'CSRF_INVALID',
          "A cookie opens the WebSocket from this installation's own pages only.",
        )
      return this.authenticate({ ...proof, mutating: false }, source, {
        allow_stale_password: false,
      })
    },
  }
}
