import { type Actor, projectRole, visibleProjects } from '#server/kernel/access'

/** Projects in which the caller is a developer or owner; undefined means all. For lists that viewers must not see. */
export function developerProjects(actor: Actor): readonly string[] | undefined {
  return visibleProjects(actor)?.filter((id) => ['developer', 'owner'].includes(projectRole(actor, id) ?? ''))
}
