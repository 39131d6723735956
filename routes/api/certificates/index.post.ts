import { Certificate, NewCertificate } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Asks an authority for a certificate, or takes one that exists. */
export default endpoint({
  summary: 'Issue or upload a certificate',
  description:
    'With `names` or `domain_id` an authority is asked over ACME: the answer comes at once with the status `issuing`, and the work goes on by itself. With `certificate` and `private_key` (or `csr_id`) a chain is uploaded: it may be in any order, must fit its key and be valid now, and the answer comes once the edge shows it, after two seconds at most; `hostnames` says for which names. What odd things were found is in `warning`.',
  access: 'developer',
  scope: 'body',
  body: NewCertificate,
  example: { names: ['shop.example.com', 'www.shop.example.com'] },
  status: 201,
  response: data(Certificate),
  errors: ['NOT_FOUND', 'CONFLICT'],
  async handler({ actor, project_id, body, services }) {
    const made = services.certificates.create(actor, project_id, body)
    await services.ingress.settled()
    return { data: { ...made, hostnames: services.certificates.hostnames(made.id) } }
  },
})
