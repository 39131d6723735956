import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Revokes one of the caller's API keys at once. */
export default endpoint({
  summary: 'Revoke an API key',
  description: 'The key answers 401 from the next request on, and WebSockets that it opened are closed.',
  access: 'self',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler({ actor, params, services }) {
    services.identity.api_keys.revoke(actor, params.id)
    return deleted(params.id)
  },
})
