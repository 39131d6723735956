import { endpoint } from '#server/endpoint'
import { IdParam } from '#server/http/schemas'
import { DeliveryList, DeliveryQuery } from '#server/webhooks/schema'

/** What a webhook received or sent, newest first. */
export default endpoint({
  summary: 'List deliveries of a webhook',
  description: 'Kept for 30 days. What a receiver answered is not kept, only its status.',
  access: 'developer',
  scope: { noun: 'webhook' },
  params: IdParam,
  query: DeliveryQuery,
  response: DeliveryList,
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, query: { status, ...paging }, services }) =>
    services.webhooks.deliveries(actor, params.id, status, paging),
})
