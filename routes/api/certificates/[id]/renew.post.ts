import { Certificate } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Begins an attempt at once. */
export default endpoint({
  summary: 'Renew a certificate',
  description:
    'The old one serves until the new one is installed; a self-signed one is at the edge when the answer comes, or follows when the edge was busy for two seconds. 409 while an attempt is under way and for uploaded ones; 429 while the authority would refuse, with the time to wait.',
  access: 'developer',
  scope: { noun: 'certificate' },
  params: IdParam,
  response: data(Certificate),
  errors: ['NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  async handler({ actor, params, services }) {
    const renewed = services.certificates.renew(actor, params.id)
    await services.ingress.settled()
    return { data: renewed }
  },
})
