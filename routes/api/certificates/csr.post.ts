import { Certificate, NewCsr } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Makes a key and a signing request for an authority that does not speak ACME. */
export default endpoint({
  summary: 'Generate a key and a signing request',
  description:
    'The key stays on the server, encrypted. Let an authority sign `csr`, then upload what it sends with this id as `csr_id`.',
  access: 'developer',
  scope: 'body',
  body: NewCsr,
  example: { names: ['shop.example.com'], key_type: 'ecdsa' },
  status: 201,
  response: data(Certificate),
  errors: ['NOT_FOUND'],
  handler: async ({ actor, project_id, body, services }) => ({
    data: await services.certificates.createCsr(actor, project_id, body),
  }),
})
