import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted } from '#server/http/schemas'
import { MemberParams } from '#server/projects/schema'

/** Takes a member out of the project. */
export default endpoint({
  summary: 'Remove a member from a project',
  description:
    'The project does not exist for them from their next request on. The last owner who can act cannot be removed.',
  access: 'owner',
  scope: { noun: 'project' },
  params: MemberParams,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.projects.members.remove(actor, params.id, params.user_id)
    return deleted(params.user_id)
  },
})
