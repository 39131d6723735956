import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a webhook with its delivery log. */
export default endpoint({
  summary: 'Delete a webhook',
  description: 'Its address answers 404 from now on; messages that wait are not sent.',
  access: 'developer',
  scope: { noun: 'webhook' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  async handler({ actor, params, services }) {
    await services.webhooks.remove(actor, params.id)
    return deleted(params.id)
  },
})
