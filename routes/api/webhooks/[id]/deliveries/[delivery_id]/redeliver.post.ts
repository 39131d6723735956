import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Delivery } from '#server/webhooks/schema'

/** Sends a message again, or does again what a forge asked for. */
export default endpoint({
  summary: 'Redeliver',
  description:
    'An outgoing message keeps its id, so that the receiver can tell that it is the same one. One that waits for its next attempt is tried now.',
  access: 'developer',
  scope: { noun: 'webhook' },
  params: v.object({
    ...IdParam.entries,
    delivery_id: v.pipe(v.string(), v.description('Delivery of this webhook.')),
  }),
  response: data(Delivery),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, services }) => ({
    data: await services.webhooks.redeliver(actor, params.id, params.delivery_id),
  }),
})
