import { Certificate } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** One certificate with the state of its renewal. */
export default endpoint({
  summary: 'Get a certificate',
  description: 'With the domains that it is shown for, the last error and the time of the next attempt.',
  access: 'viewer',
  scope: { noun: 'certificate' },
  params: IdParam,
  response: data(Certificate),
  errors: ['NOT_FOUND'],
  handler: ({ params, services }) => ({ data: services.certificates.get(params.id) }),
})
