import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, pageOf, type Paging } from '#server/kernel/schemas'
import { isWanted } from '#server/kernel/page'
import type { ApiKeyRepository } from './credentials-repository.ts'
import type { Invitations } from './invitations.ts'
import type { ProjectGrant } from './invitations-repository.ts'
import type { UserRepository, UserRow } from './repository.ts'
import type { Revocations } from './revocations.ts'
import type { Sessions } from './sessions.ts'
import type { Invitation, Member, MemberChange, MemberQuery } from './team-schema.ts'
import type { Told } from './told.ts'

export interface TeamParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  keys: ApiKeyRepository
  sessions: Sessions
  invitations: Invitations
  revocations: Revocations
  told: Told
  rolesOf(user_id: string): ProjectGrant[]
  /** Throws 409 when a project would be left without an owner who can act. */
  requireOtherOwners(user_id: string): void
  /** Makes an administrator an owner of every project that would be left without one who can act. */
  takeOver(actor: Actor, user_id: string): void
  tell(email: string, subject: string, text: string): void
}

/** A limit for SQLite that is none. */
const ALL = -1
const LAST_ADMINISTRATOR =
  'This is the last administrator who can act. Make somebody else an administrator first.'
const invited = ({ id, email, role, projects, created_at }: Invitation): Member => ({
  id,
  email,
  name: '',
  role,
  status: 'invited',
  two_factor_enabled: false,
  projects,
  created_at,
  last_login_at: null,
})

/**
 * The users of the installation, for administrators. Guards run in the transaction of the change, so that two
 * at once cannot both pass.
 */
export function createTeam(parts: TeamParts) {
  const { db, clock, audit, users, sessions, invitations, revocations, told, rolesOf } = parts
  const view = (user: UserRow): Member => ({
    id: user.id,
    email: user.email,
    name: user.name,
    role: user.role,
    status: user.status,
    two_factor_enabled: user.totp_seed !== null,
    projects: rolesOf(user.id).map(({ project_id, role }) => ({ project_id, role })),
    created_at: user.created_at,
    last_login_at: user.last_login_at,
  })
  const find = (id: string): UserRow => orThrow(users.find(id), () => notFound('member'))
  const requireOtherAdministrator = (user: UserRow) => {
    if (user.role === 'admin' && user.status === 'active' && users.otherAdministrators(user.id) === 0)
      throw conflict(LAST_ADMINISTRATOR)
  }
  /** Sessions end; keys stay but answer 401, because the user does. */
  const shutOut = (user_id: string) => {
    sessions.endOthers(user_id)
    for (const id of parts.keys.idsOf(user_id)) revocations.announce({ kind: 'api_key', id, user_id })
    revocations.announce({ kind: 'user', user_id })
  }
  const apply = (actor: Actor, user: UserRow, change: MemberChange): void => {
    const { role = user.role, status = user.status } = change
    if (role !== 'admin' || status !== 'active') requireOtherAdministrator(user)
    // A compromised account is shut out at once: who does it answers for the projects that it leaves.
    if (status === 'disabled' && user.status === 'active') {
      if (actor.user_id === user.id) parts.requireOtherOwners(user.id)
      else parts.takeOver(actor, user.id)
    }
    users.update(
      user.id,
      { role, status, ...(change.reset_two_factor ? { totp_seed: null, totp_pending: null } : {}) },
      clock.iso(),
    )
    const note = (action: string, before: Record<string, unknown>, after: Record<string, unknown>) =>
      audit.record(actor, {
        action,
        resource_type: 'user',
        resource_id: user.id,
        project_id: null,
        before,
        after,
      })
    if (role !== user.role) note('member.role_change', { role: user.role }, { role })
    if (status !== user.status)
      note(status === 'disabled' ? 'member.disable' : 'member.enable', { status: user.status }, { status })
    if (role !== user.role) revocations.announce({ kind: 'user', user_id: user.id })
    invitations.endVoid(actor, user.id)
    if (status === 'disabled' && user.status === 'active') shutOut(user.id)
    if (change.end_sessions) note('member.sessions_end', {}, { sessions_ended: sessions.endOthers(user.id) })
    if (!change.reset_two_factor || user.totp_seed === null) return
    users.replaceRecoveryCodes(user.id, [])
    note('member.two_factor_reset', { two_factor_enabled: true }, { two_factor_enabled: false })
    shutOut(user.id)
    parts.tell(
      user.email,
      'Two-factor authentication was reset',
      `${actor.name || 'An administrator'} turned two-factor authentication off for your account. Log in and set it up again.`,
    )
  }
  return {
    list(query: MemberQuery & Paging) {
      if (!query.status?.includes('invited')) {
        const { rows, total } = users.page(query, ...limits(query))
        return paged({ rows: rows.map(view), total }, query)
      }
      const q = query.q?.toLowerCase()
      const known = query.status.length > 1 ? users.page(query, ALL, 0).rows.map(view) : []
      const open = invitations
        .open()
        .filter((one) => (!q || one.email.includes(q)) && isWanted(query.role, one.role))
      return pageOf([...open.map(invited), ...known], query)
    },
    get(id: string): Member {
      const invitation = invitations.find(id)
      return invitation ? invited(invitation) : view(find(id))
    },
    change: (actor: Actor, id: string, change: MemberChange): Member =>
      db.tx(() => {
        apply(actor, find(id), change)
        told.member('updated', id)
        return view(find(id))
      }),
    /** Removes a user with their sessions, keys and memberships; what they made in projects stays there. */
    remove(actor: Actor, id: string): void {
      if (invitations.find(id)) return invitations.revoke(actor, id)
      db.tx(() => {
        const user = find(id)
        requireOtherAdministrator(user)
        parts.requireOtherOwners(id)
        audit.record(actor, {
          action: 'member.remove',
          resource_type: 'user',
          resource_id: id,
          project_id: null,
          before: { email: user.email, name: user.name, role: user.role, projects: rolesOf(id) },
        })
        shutOut(id)
        users.delete(id)
        invitations.endVoid(actor, id)
        told.member('removed', id)
      })
    },
  }
}
export type Team = ReturnType<typeof createTeam>
