import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { ProjectWithCounts } from '#server/projects/schema'

/** One project, with how much is in it. */
export default endpoint({
  summary: 'Get a project',
  description: 'The project with its limits and how much of each kind of resource it holds.',
  access: 'viewer',
  scope: { noun: 'project' },
  params: IdParam,
  response: data(ProjectWithCounts),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, services }) => ({ data: services.projects.get(actor, params.id) }),
})
