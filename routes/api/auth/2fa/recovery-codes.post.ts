import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Confirmation, RecoveryCodes } from '#server/identity/schema'

/** Replaces the recovery codes; the old ones end. */
export default endpoint({
  summary: 'Replace the recovery codes',
  description:
    'Needs password and code. The ten new codes are in this answer only; the old ones no longer count.',
  access: 'self',
  body: Confirmation,
  example: { password: 'correct horse battery staple', totp_code: '123456' },
  response: data(RecoveryCodes),
  errors: ['INVALID_CREDENTIALS', 'TOTP_REQUIRED', 'FORBIDDEN', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ actor, body, services }) => ({
    data: { recovery_codes: await services.identity.second_factor.renewRecoveryCodes(actor, body) },
  }),
})
