import { endpoint } from '#server/endpoint'
import { IdParam, list } from '#server/http/schemas'
import { Resource, ResourceQuery } from '#server/projects/schema'

/** Everything in a project, kind by kind. */
export default endpoint({
  summary: 'List everything in a project',
  description:
    'For its overview: kind by kind, newest first in each. Keys and tokens are shown to developers and owners only.',
  access: 'viewer',
  scope: { noun: 'project' },
  params: IdParam,
  query: ResourceQuery,
  response: list(Resource),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, query, services }) => services.projects.resources(actor, params.id, query),
})
