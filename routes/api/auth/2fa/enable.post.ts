import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { RecoveryCodes, TwoFactorEnable } from '#server/identity/schema'

/** Turns two-factor authentication on and shows the recovery codes, once. */
export default endpoint({
  summary: 'Confirm two-factor enrolment',
  description:
    'Needs a code of the prepared seed. Ends the other sessions, which were opened without a second factor. The ten recovery codes are in this answer only.',
  access: 'self',
  body: TwoFactorEnable,
  example: { totp_code: '123456' },
  response: data(RecoveryCodes),
  errors: ['FORBIDDEN', 'CONFLICT'],
  handler: async ({ actor, body, services }) => ({
    data: { recovery_codes: await services.identity.second_factor.enable(actor, body.totp_code) },
  }),
})
