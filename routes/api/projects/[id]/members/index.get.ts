import { endpoint } from '#server/endpoint'
import { IdParam, list, sortedPaging } from '#server/http/schemas'
import { ProjectMember } from '#server/projects/schema'

/** Who may do what in a project. */
export default endpoint({
  summary: 'List the members of a project',
  description:
    'Users who have a role in the project, newest first. Administrators of the installation are not listed unless they are members.',
  access: 'viewer',
  scope: { noun: 'project' },
  params: IdParam,
  query: sortedPaging(['email', 'name', 'role', 'created_at'], 'Newest first.', {
    created_at: 'm.created_at',
    email: 'u.email',
    name: 'u.name',
  }),
  response: list(ProjectMember),
  errors: ['NOT_FOUND'],
  handler: ({ params, query, services }) => services.projects.members.list(params.id, query),
})
