import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { MemberParams, ProjectMember, ProjectMemberChange } from '#server/projects/schema'

/** Changes the role of a member. */
export default endpoint({
  summary: 'Change the role of a member',
  description: "Holds from the member's next request on. The last owner who can act cannot be demoted.",
  access: 'owner',
  scope: { noun: 'project' },
  params: MemberParams,
  body: ProjectMemberChange,
  example: { role: 'viewer' },
  response: data(ProjectMember),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.projects.members.change(actor, params.id, params.user_id, body.role),
  }),
})
