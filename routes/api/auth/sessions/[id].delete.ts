import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Ends one of the caller's sessions. */
export default endpoint({
  summary: 'Revoke one of own sessions',
  description: 'Its token and cookie answer 401 from then on, and its WebSockets are closed.',
  access: 'self',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler({ actor, params, services }) {
    services.identity.sessions.end(actor, params.id)
    return deleted(params.id)
  },
})
