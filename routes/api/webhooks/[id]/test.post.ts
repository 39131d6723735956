import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { WebhookTest } from '#server/webhooks/schema'

/** Sends a test message to a receiver and tells how it went. */
export default endpoint({
  summary: 'Send a test event',
  description:
    'Only whether it was taken and with which status: what the receiver says is not shown. By mail, ten within an hour for each user.',
  access: 'developer',
  scope: { noun: 'webhook' },
  params: IdParam,
  response: data(WebhookTest),
  errors: ['NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ actor, params, services }) => ({ data: await services.webhooks.test(actor, params.id) }),
})
