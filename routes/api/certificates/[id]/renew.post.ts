import { Certificate } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Begins an attempt at once. */
export default endpoint({
  summary: 'Renew a certificate',
  description: 'The old one serves until the new one is installed. 409 while an attempt is under way and for uploaded ones; 429 while the authority would refuse, with the time to wait.',
  access: 'developer',
  scope: { noun: 'certificate' },
  params: IdParam,
  response: data(Certificate),
  errors: ['NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  handler: ({ actor, params, services }) => ({ data: services.certificates.renew(actor, params.id) }),
})
