import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { CreatedApiKey, NewApiKey } from '#server/identity/schema'

/** Creates an API key and shows its value once. */
export default endpoint({
  summary: 'Create an API key',
  description:
    'The key acts with the rights that its owner has at the time of each call, cut by `scope`, `project_ids`, `addresses` and `expires_at`. ' +
    'While two-factor authentication is on, `password` and `totp_code` are needed. An API key cannot create another one.',
  access: 'self',
  body: NewApiKey,
  example: { name: 'Deploys from CI', scope: 'deploy' },
  status: 201,
  response: data(CreatedApiKey),
  errors: ['INVALID_CREDENTIALS', 'TOTP_REQUIRED', 'FORBIDDEN', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ actor, body, services }) => ({
    data: await services.identity.api_keys.create(actor, body),
  }),
})
