import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewWebhook, Webhook } from '#server/webhooks/schema'

/** Creates a hook of a forge, a deploy hook or a notification. */
export default endpoint({
  summary: 'Create a webhook',
  description:
    'Give the `url` and the `secret` of a git hook to the forge. The `url` of a deploy hook is itself the secret: whoever calls it starts a deployment. A generic notification is signed as Standard Webhooks describe it. Secrets are in this answer only.',
  access: 'developer',
  scope: { noun: 'app', field: 'app_id', or_project: true },
  body: NewWebhook,
  example: { kind: 'git', provider: 'github', app_id: 'app_0123456789abcdefghjk' },
  status: 201,
  response: data(Webhook),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, project_id, body, services }) => ({
    data: services.webhooks.add(actor, project_id, body),
  }),
})
