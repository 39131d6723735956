import { CertificateQuery, Certificate } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

/** Certificates of the caller's projects, newest first. */
export default endpoint({
  summary: 'List certificates',
  description:
    'With issuer, names, expiry and the state of their renewal. Private keys never leave the server.',
  access: 'viewer',
  query: CertificateQuery,
  response: list(Certificate),
  handler: ({ actor, query, services }) => services.certificates.list(actor, query),
})
