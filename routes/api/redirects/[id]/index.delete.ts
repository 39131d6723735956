import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Delete a redirect rule',
  description:
    'Requests that it answered go to the app again. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  response: data(Deleted),
  async handler({ actor, params, services }) {
    services.redirects.remove(actor, params.id)
    await services.ingress.settled()
    return deleted(params.id)
  },
})
