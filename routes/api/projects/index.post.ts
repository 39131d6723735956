import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewProject, ProjectWithCounts } from '#server/projects/schema'

/** Creates a project; its creator becomes the owner. */
export default endpoint({
  summary: 'Create a project',
  description:
    'The caller becomes its owner. Apps, databases and their variables live in a project; its members see nothing of the others.',
  access: 'member',
  body: NewProject,
  example: { name: 'shop', description: 'The web shop and its services' },
  status: 201,
  response: data(ProjectWithCounts),
  errors: ['CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.projects.create(actor, body) }),
})
