import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { NewProjectMember, ProjectMember } from '#server/projects/schema'

/** Makes a user of the installation a member of the project. */
export default endpoint({
  summary: 'Add a member to a project',
  description:
    'Names a user of the installation by `user_id` or `email`. Where the settings let owners invite, an unknown `email` gets an invitation by mail.',
  access: 'owner',
  scope: { noun: 'project' },
  params: IdParam,
  body: NewProjectMember,
  example: { email: 'ada@example.com', role: 'developer' },
  status: 201,
  response: data(ProjectMember),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.projects.members.add(actor, params.id, body),
  }),
})
