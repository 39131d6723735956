import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Delete a redirect rule',
  description: 'Requests that it answered go to the app again at once.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  response: data(Deleted),
  handler({ actor, params, services }) {
    services.redirects.remove(actor, params.id)
    return deleted(params.id)
  },
})
