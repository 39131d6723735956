import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Takes the name off the edge at once. */
export default endpoint({
  summary: 'Remove a domain',
  description:
    'Its name answers 404 from then on: the answer comes once the edge obeys, after two seconds at most. For seven days only the same project can add it again, because DNS may still lead here. The automatic name of an app cannot be removed.',
  access: 'developer',
  scope: { noun: 'domain' },
  params: IdParam,
  response: data(Deleted),
  errors: ['CONFLICT'],
  async handler({ actor, params, services }) {
    services.domains.remove(actor, params.id)
    await services.ingress.settled()
    return deleted(params.id)
  },
})
