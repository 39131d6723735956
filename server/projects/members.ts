import type { Actor, ProjectRole } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { MemberRow, ProjectRepository } from './repository.ts'
import type { NewProjectMember, ProjectMember } from './schema.ts'

/** What projects need to know of people; handed in at composition. */
export interface People {
  /** A user by id or e-mail address who can act; undefined when there is none. */
  find(by: { user_id?: string; email?: string }): { id: string; email: string; name: string } | undefined
  /**
   * Sends an invitation to the installation and this project, where the settings let owners do so; undefined
   * where they do not.
   */
  invite(
    actor: Actor,
    email: string,
    grant: { project_id: string; role: ProjectRole },
  ): Promise<{ id: string; email: string; created_at: string } | undefined>
  /** The rights of a user have changed, in the transaction of the change. */
  rightsChanged(actor: Actor, user_id: string): void
}
export interface MemberParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  events: Events
  repository: ProjectRepository
  people: () => People
}

const view = ({ user_id, email, name, role, created_at }: MemberRow): ProjectMember => ({
  user_id,
  email,
  name,
  role,
  status: 'active',
  created_at,
})
/**
 * Projects that one user may be in: who they are is read with each of their requests, and so are their roles in all
 * of them.
 */
const MOST_OF_USER = 1_000
/**
 * Projects that have no owner but one member. What a project may have is limited, and work takes turns by projects:
 * whoever makes as many as they like has no limits.
 */
const MOST_OWNED_ALONE = 100
const LAST_OWNER = 'This is the last owner of the project. Make somebody else an owner first.'

/** Who may do what in a project. */
export function createMembers({ db, clock, audit, events, repository, people }: MemberParts) {
  const get = (project_id: string, user_id: string): MemberRow =>
    orThrow(repository.member(project_id, user_id), () => notFound('member'))
  /**
   * In the transaction of the change, so that two owners who remove each other cannot both succeed.
   * Administrators own the default project.
   */
  const requireOtherOwner = (member: MemberRow) => {
    if (member.role !== 'owner' || repository.find(member.project_id)?.is_default === 1) return
    if (repository.otherOwners(member.project_id, member.user_id) === 0) throw conflict(LAST_OWNER)
  }
  const emit = (
    actor: Actor,
    what: string,
    project_id: string,
    user: { id: string; email: string },
    before: ProjectRole | null,
    after: ProjectRole | null,
  ) => {
    audit.record(actor, {
      action: `project.member_${what}`,
      resource_type: 'project',
      resource_id: project_id,
      project_id,
      before: before && { user_id: user.id, email: user.email, role: before },
      after: after && { user_id: user.id, email: user.email, role: after },
    })
    events.append({
      type: `project.member_${what}`,
      project_id,
      actor_id: actor.user_id || null,
      payload: { user_id: user.id, role: after },
    })
    people().rightsChanged(actor, user.id)
  }
  const insert = (
    actor: Actor,
    project_id: string,
    user: { id: string; email: string },
    role: ProjectRole,
  ) => {
    repository.addMember(project_id, user.id, role, clock.iso())
    emit(actor, 'add', project_id, user, null, role)
  }
  const requireRoom = (user_id: string, whose: string) => {
    if (repository.rolesOf(user_id).length >= MOST_OF_USER)
      throw conflict(`${whose} in ${MOST_OF_USER} projects, which is the most. Remove some of them first.`)
  }
  return {
    /** Throws 409 for a member who has as many projects as one may have. Call it in the transaction that makes one. */
    requireRoomForOwn(user_id: string): void {
      requireRoom(user_id, 'You are')
      if (repository.onlyOwnedBy(user_id).length >= MOST_OWNED_ALONE)
        throw conflict(
          `You are the only owner of ${MOST_OWNED_ALONE} projects. Delete one that nothing is in any more, or ask an administrator to make another.`,
        )
    },
    list(project_id: string, paging: Paging) {
      const { rows, total } = repository.members(project_id, ...limits(paging))
      return paged({ rows: rows.map(view), total }, paging)
    },
    /** For a user who was found already, in the current transaction. */
    insert,
    /** Adds a user; somebody who is none yet is invited, where the settings let owners do so. */
    async add(actor: Actor, project_id: string, given: NewProjectMember): Promise<ProjectMember> {
      const { email, role } = given
      const known = people().find(given)
      const invited =
        known || email === undefined ? undefined : await people().invite(actor, email, { project_id, role })
      if (invited)
        return {
          user_id: invited.id,
          email: invited.email,
          name: '',
          role,
          status: 'invited',
          created_at: invited.created_at,
        }
      return db.tx(() => {
        const user = people().find(given)
        if (!user)
          throw invalid(
            email === undefined ? 'user_id' : 'email',
            'is not a user of this installation. Ask an administrator to invite them.',
          )
        if (repository.member(project_id, user.id))
          throw conflict('This user is a member of the project already.')
        requireRoom(user.id, 'This user is')
        insert(actor, project_id, user, role)
        return view(get(project_id, user.id))
      })
    },
    change: (actor: Actor, project_id: string, user_id: string, role: ProjectRole): ProjectMember =>
      db.tx(() => {
        const member = get(project_id, user_id)
        if (role === member.role) return view(member)
        requireOtherOwner(member)
        repository.setRole(project_id, user_id, role)
        emit(actor, 'change', project_id, { id: user_id, email: member.email }, member.role, role)
        return view(get(project_id, user_id))
      }),
    remove: (actor: Actor, project_id: string, user_id: string): void =>
      db.tx(() => {
        const member = get(project_id, user_id)
        requireOtherOwner(member)
        repository.removeMember(project_id, user_id)
        emit(actor, 'remove', project_id, { id: user_id, email: member.email }, member.role, null)
      }),
    /** Throws 409 when this user, gone, would leave a project without an owner who can act. */
    requireOtherOwners(user_id: string): void {
      const names = repository.onlyOwnedBy(user_id).map(({ name }) => name)
      if (names.length > 0)
        throw conflict(
          `This user is the last owner of ${names.slice(0, 5).join(', ')}${names.length > 5 ? ' and others' : ''}. Make somebody else an owner there first.`,
        )
    },
    /**
     * Makes the actor an owner of every project of which this user, gone, would be the last one who can act. In
     * the transaction of the change that shuts them out.
     */
    takeOver(actor: Actor, user_id: string): void {
      for (const { id } of repository.onlyOwnedBy(user_id)) {
        const member = repository.member(id, actor.user_id)
        if (!member) insert(actor, id, { id: actor.user_id, email: actor.email }, 'owner')
        else if (member.role !== 'owner') {
          repository.setRole(id, actor.user_id, 'owner')
          emit(actor, 'change', id, { id: actor.user_id, email: actor.email }, member.role, 'owner')
        }
      }
    },
  }
}
export type Members = ReturnType<typeof createMembers>
