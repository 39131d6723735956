import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { AcmeChange, AcmeSettings } from '#server/settings/schema'

/** The certificate authority. */
export default endpoint({
  summary: 'Change the certificate authority',
  description:
    'A field that is left out keeps its value. A directory or account binding that changes is tested before it is kept: one that does not answer as an ACME directory is 422. `skip_test` keeps it untested. New certificates come from it; those that are there serve on.',
  access: 'admin',
  body: AcmeChange,
  example: { email: 'ops@example.com', key_type: 'ecdsa', challenge: 'http-01' },
  response: data(AcmeSettings),
  handler: async ({ actor, body, services }) => ({
    data: await services.settings.changeAcme(actor, body),
  }),
})
