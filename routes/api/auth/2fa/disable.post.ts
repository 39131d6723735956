import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Confirmation, TwoFactorState } from '#server/identity/schema'

/** Turns two-factor authentication off. */
export default endpoint({
  summary: 'Turn two-factor authentication off',
  description:
    'Needs password and code, or a recovery code. Ends the other sessions, forgets the seed and the recovery codes.',
  access: 'self',
  body: Confirmation,
  example: { password: 'correct horse battery staple', totp_code: '123456' },
  response: data(TwoFactorState),
  errors: ['INVALID_CREDENTIALS', 'TOTP_REQUIRED', 'FORBIDDEN', 'CONFLICT', 'RATE_LIMITED'],
  async handler({ actor, body, services }) {
    await services.identity.second_factor.disable(actor, body)
    return { data: { two_factor_enabled: false } }
  },
})
