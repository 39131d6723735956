import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a project in which nothing is left. */
export default endpoint({
  summary: 'Delete an empty project',
  description:
    'A project that still holds something answers 409 with what it is. The default project cannot be deleted.',
  access: 'owner',
  scope: { noun: 'project' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.projects.remove(actor, params.id)
    return deleted(params.id)
  },
})
