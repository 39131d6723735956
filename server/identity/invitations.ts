import { randomBytes } from 'node:crypto'
import { type Actor, PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { momentOf } from '#server/kernel/sentences'
import type { Mail } from '#server/platform/mail/mail'
import { sha256 } from './authenticate.ts'
import type { InvitationRepository, InvitationRow, ProjectGrant } from './invitations-repository.ts'
import { type LoginLimit, peerOf } from './login-limit.ts'
import { weaknessOf } from './password-rules.ts'
import type { Passwords } from './passwords.ts'
import type { UserRepository } from './repository.ts'
import type { AcceptedInvitation, Invitation, NewMember } from './team-schema.ts'
import { userOf } from './login.ts'
import type { Told } from './told.ts'

export interface InvitationParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  users: UserRepository
  invitations: InvitationRepository
  passwords: Passwords
  limit: LoginLimit
  told: Told
  mail: Mail
  /** Whether a project exists. */
  hasProject(id: string): boolean
  addToProject(grant: ProjectGrant, user_id: string, actor: Actor): void
  rolesOf(user_id: string): ProjectGrant[]
  /** Whether owners of projects may invite people. */
  owners_may_invite(): boolean
  /** Where people reach the dashboard. */
  public_url(): string
  /** Name of this installation. */
  installation(): string
}

const LIFETIME_MS = 7 * 86_400_000
const VOID =
  'Who sent this invitation may not invite you to this any more. Ask an administrator for a new invitation.'

const grantsOf = (row: InvitationRow) => JSON.parse(row.projects) as ProjectGrant[]
const viewOf = (row: InvitationRow): Invitation => ({
  id: row.id,
  email: row.email,
  role: row.role,
  projects: grantsOf(row),
  created_at: row.created_at,
  expires_at: row.expires_at,
})

/** Invitations: bound to one address, good for one use, and only for a week. */
export function createInvitations(parts: InvitationParts) {
  const { db, clock, audit, users, invitations, passwords, limit, mail, told } = parts
  const note = (actor: Actor, action: string, row: InvitationRow) =>
    audit.record(actor, {
      action,
      resource_type: 'invitation',
      resource_id: row.id,
      project_id: null,
      after: { email: row.email, role: row.role, projects: grantsOf(row) },
    })
  /** Whether who sent an invitation may still give what it promises. */
  const isStanding = (row: InvitationRow): boolean => {
    const { invited_by, role } = row
    const inviter = users.find(invited_by)
    if (inviter?.status !== 'active') return false
    if (inviter.role === 'admin') return true
    if (inviter.role !== 'member' || role !== 'member' || !parts.owners_may_invite()) return false
    const owned = new Set(
      parts.rolesOf(invited_by).flatMap((own) => (own.role === 'owner' ? own.project_id : [])),
    )
    return grantsOf(row).every(({ project_id }) => owned.has(project_id))
  }
  const requireStanding = (row: InvitationRow) => {
    if (!isStanding(row)) throw new ApiError('NOT_FOUND', VOID)
  }
  const end = (actor: Actor, row: InvitationRow) => {
    if (!invitations.take(row.id)) return
    note(actor, 'member.invitation_revoke', row)
    told.invitation('invitation_revoked', row.id)
  }
  const insert = (
    actor: Actor,
    given: Pick<InvitationRow, 'email' | 'role'> & { projects: ProjectGrant[] },
  ): { row: InvitationRow; token: string; link: string } => {
    // One address has one invitation, whose id a newer one takes over: so the token of an older one is known
    // for what it is.
    const id = invitations.idOf(given.email) ?? newId('inv')
    const token = `${id}.${randomBytes(32).toString('base64url')}`
    const row: InvitationRow = {
      id,
      email: given.email,
      role: given.role,
      projects: JSON.stringify(given.projects),
      token_hash: sha256(token),
      invited_by: actor.user_id,
      created_at: clock.iso(),
      expires_at: new Date(clock.now() + LIFETIME_MS).toISOString(),
    }
    db.tx(() => {
      if (users.findByEmail(given.email)) throw conflict('There is a user with this e-mail address already.')
      invitations.replace(row)
      note(actor, 'member.invite', row)
      told.invitation('invited', row.id)
    })
    // In the fragment, which browsers keep to themselves: it reaches no log and no Referer.
    return { row, token, link: `${parts.public_url()}/invitation#${token}` }
  }
  const send = (actor: Actor, row: InvitationRow, link: string) =>
    mail.send({
      to: row.email,
      subject: `${actor.name || 'An administrator'} invites you to ${parts.installation()}`.replace(
        /[\r\n]+/g,
        ' ',
      ),
      text: `Open this link to choose a name and a password, and you are in:\n\n${link}\n\nIt works once, until ${momentOf(row.expires_at)}. If you expected no invitation, ignore this message.\n`,
    })
  return {
    open: (): Invitation[] => invitations.open(clock.iso()).map(viewOf),
    find: (id: string): Invitation | undefined => {
      const row = invitations.find(id)
      return row && viewOf(row)
    },
    /** Creates an invitation and sends it; what cannot be sent is shown to the administrator, once. */
    async create(
      actor: Actor,
      given: NewMember,
    ): Promise<
      Invitation & {
        sent: boolean
        link: string | null
        token: string | null
        reason: string | null
      }
    > {
      const { role } = given
      if (role === 'owner')
        throw forbidden(
          'Administrator is the highest platform role. To make someone the owner of a project, use projects.',
        )
      for (const [index, grant] of given.projects.entries())
        if (!parts.hasProject(grant.project_id))
          throw invalid(`projects.${index}.project_id`, 'is not a project.')
      if (new Set(given.projects.map(({ project_id }) => project_id)).size !== given.projects.length)
        throw invalid('projects', 'must name each project once.')
      const { row, link, token } = insert(actor, {
        email: given.email,
        role,
        projects: given.projects,
      })
      if (!mail.isConfigured())
        return {
          ...viewOf(row),
          sent: false,
          link,
          token,
          reason: 'No mail server is configured. Hand this link over yourself.',
        }
      try {
        await send(actor, row, link)
        return { ...viewOf(row), sent: true, link: null, token: null, reason: null }
      } catch (error) {
        return {
          ...viewOf(row),
          sent: false,
          link,
          token,
          reason: `${(error as Error).message} Hand this link over yourself.`,
        }
      }
    },
    /**
     * An invitation to the installation and to one project, by an owner of it. Throws 409 when nobody but the
     * person invited may see the link, because mail does not work, and when somebody invited this address
     * already.
     */
    async createByOwner(actor: Actor, email: string, grant: ProjectGrant): Promise<Invitation> {
      if (!mail.isConfigured())
        throw conflict('No mail server is configured. Ask an administrator to invite this person.')
      if (invitations.open(clock.iso()).some((row) => row.email === email))
        throw conflict(
          'This person was invited already. Add them once they have accepted, or ask an administrator.',
        )
      const { row, link } = insert(actor, { email, role: 'member', projects: [grant] })
      try {
        await send(actor, row, link)
      } catch (error) {
        db.tx(() => {
          if (invitations.take(row.id)) told.invitation('invitation_revoked', row.id)
        })
        throw conflict(`${(error as Error).message} The invitation was not sent; ask an administrator.`)
      }
      return viewOf(row)
    },
    revoke(actor: Actor, id: string): void {
      const row = orThrow(invitations.find(id), () => notFound('member'))
      db.tx(() => end(actor, row))
    },
    /**
     * Ends the open invitations of somebody whose rights have shrunk, as far as they could not send them now.
     * Call it in the transaction of the change.
     */
    endVoid(actor: Actor, invited_by: string): void {
      for (const row of invitations.openOf(invited_by, clock.iso())) if (!isStanding(row)) end(actor, row)
    },
    /**
     * Turns an invitation into a user. Unknown, used and expired ones answer alike; one that a newer one
     * replaced says so, and one whose sender may not give that any more is void.
     */
    async accept(given: AcceptedInvitation, client: { address: string; id: string }) {
      limit.attempt(client.address)
      const open = () => {
        const found = invitations.findByToken(sha256(given.token))
        return found && found.expires_at > clock.iso() ? found : undefined
      }
      const row = open()
      const gone = () => notFound('invitation')
      const newer = row ? undefined : invitations.find(given.token.split('.')[0]!)
      if (newer && newer.expires_at > clock.iso())
        throw new ApiError(
          'NOT_FOUND',
          'A newer invitation was sent to this address. Use that one; this one ended with it.',
        )
      if (!row) throw gone()
      requireStanding(row)
      const weakness = weaknessOf(given.password, { email: row.email, name: given.name })
      if (weakness) throw invalid('password', weakness)
      const password_hash = await passwords.hash(given.password, {
        key: peerOf(client.address),
        is_known: false,
      })
      return db.tx(() => {
        // A newer invitation has the id of this one, and may promise less.
        if (!open() || !invitations.take(row.id)) throw gone()
        requireStanding(row)
        if (users.findByEmail(row.email)) throw conflict('There is a user with this e-mail address already.')
        const id = newId('usr')
        users.insert({
          id,
          email: row.email,
          name: given.name,
          role: row.role,
          password_hash,
          password_stale: 0,
          created_at: clock.iso(),
        })
        const by: Actor = {
          ...PLATFORM,
          method: 'invitation' as Actor['method'],
          user_id: id,
          email: row.email,
          name: given.name,
          address: client.address,
          request_id: client.id,
        }
        audit.record(by, {
          action: 'member.join',
          resource_type: 'user',
          resource_id: id,
          project_id: null,
          after: {
            email: row.email,
            role: row.role,
            invitation_id: row.id,
            invited_by: row.invited_by,
          },
        })
        told.member('joined', id)
        for (const grant of grantsOf(row))
          if (parts.hasProject(grant.project_id)) parts.addToProject(grant, id, by)
        return userOf(users.find(id)!)
      })
    },
    prune: () => invitations.prune(clock.iso()),
  }
}
export type Invitations = ReturnType<typeof createInvitations>
