import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Project, ProjectQuery } from '#server/projects/schema'

/** The projects that the caller can see, newest first. */
export default endpoint({
  summary: 'List projects',
  description: 'Projects in which the caller has a role, newest first; administrators see all.',
  access: 'viewer',
  query: ProjectQuery,
  response: list(Project),
  handler: ({ actor, query, services }) => services.projects.list(actor, query),
})
