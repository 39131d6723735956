import { DeletionQuery } from '#server/certificates/schema'
import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a certificate that no domain depends on, or revokes it. */
export default endpoint({
  summary: 'Delete a certificate',
  description:
    'A domain that has another certificate falls back to that one. The only certificate of a domain answers 409, unless it is revoked: its key is erased at once, and the domain is left with the own certificate of the edge. The answer comes once the edge obeys, after two seconds at most.',
  access: 'developer',
  scope: { noun: 'certificate' },
  params: IdParam,
  query: DeletionQuery,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  async handler({ actor, params, query, services }) {
    services.certificates.remove(actor, params.id, query.revoke === 'true')
    await services.ingress.settled()
    return deleted(params.id)
  },
})
