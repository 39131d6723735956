import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { TwoFactorSetup } from '#server/identity/schema'

/** Starts enrolment with a new seed; nothing changes for logins until a code of it was confirmed. */
export default endpoint({
  summary: 'Start two-factor enrolment',
  description:
    'Answers a new seed as text, `otpauth` address and QR code. It counts once `POST /api/auth/2fa/enable` has seen a code of it; starting again replaces it.',
  access: 'self',
  response: data(TwoFactorSetup),
  errors: ['FORBIDDEN', 'CONFLICT'],
  handler: async ({ actor, services }) => ({
    data: await services.identity.second_factor.setup(actor),
  }),
})
