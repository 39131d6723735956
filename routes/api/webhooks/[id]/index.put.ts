import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Webhook, WebhookChange } from '#server/webhooks/schema'

/** Changes what a webhook tells, where and with which secret. */
export default endpoint({
  summary: 'Change a webhook',
  description:
    '`rotate` makes a new secret, and for hooks that are called a new address; the old ones end at once and the new ones are in this answer only.',
  access: 'developer',
  scope: { noun: 'webhook' },
  params: IdParam,
  body: WebhookChange,
  example: { enabled: false },
  response: data(Webhook),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, body, services }) => ({
    data: services.webhooks.change(actor, params.id, body),
  }),
})
