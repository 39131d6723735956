import { type Actor, type ProjectRole, projectRole, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { createProjectRepository } from './repository.ts'

export interface ProjectOptions { db: Db; clock: Clock; audit: AuditTrail; events: Events }

/** Name of the project that a fresh installation has. */
const DEFAULT_NAME = 'default'
const MANY = 1_000

/** Projects: every resource lives in one, and roles in it decide who may do what. */
export function createProjects({ db, clock }: ProjectOptions) {
  const repository = createProjectRepository(db)
  const ensureDefault = (): string => db.tx(() => {
    const found = repository.default()
    if (found) return found
    const id = newId('prj')
    repository.insert({ id, name: DEFAULT_NAME, description: '', is_default: 1, quotas: '{}', created_at: clock.iso(), updated_at: clock.iso() })
    return id
  })
  return {
    /** The id itself when the project exists: a project is its own scope. */
    projectOf: (id: string): string | undefined => (repository.exists(id) ? id : undefined),
    default: ensureDefault,
    rolesOf: repository.rolesOf as (user_id: string) => { project_id: string; role: ProjectRole }[],
    /** What the caller sees in `me`. */
    listFor: (actor: Actor) => repository.page(visibleProjects(actor), undefined, MANY, 0).rows.map(({ id, name }) => ({ id, name, role: projectRole(actor, id)! })),
  }
}
export type Projects = ReturnType<typeof createProjects>
