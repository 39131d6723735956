import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Me, MeChange } from '#server/identity/schema'

/** Changes what users may change about themselves. */
export default endpoint({
  summary: 'Update own name, e-mail address or preferences',
  description:
    'Only fields that are sent change. A new e-mail address needs `current_password` and, while two-factor authentication is on, `totp_code`; the old address is told.',
  access: 'self',
  body: MeChange,
  example: { name: 'Ada Lovelace', preferences: { theme: 'dark' } },
  response: data(Me),
  errors: ['INVALID_CREDENTIALS', 'TOTP_REQUIRED', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ actor, body, services }) => ({
    data: await services.identity.account.change(actor, body),
  }),
})
