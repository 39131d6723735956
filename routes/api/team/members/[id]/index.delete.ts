import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Removes a user, or takes an invitation back. */
export default endpoint({
  summary: 'Remove a user',
  description:
    'Their sessions and API keys end at once, with open WebSockets. What they made in projects stays. The last administrator and the last owner of a project cannot be removed.',
  access: 'admin',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.identity.team.remove(actor, params.id)
    return deleted(params.id)
  },
})
