import { Domain, VerifyDomain } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Looks a domain up now and waits for what the resolvers say. */
export default endpoint({
  summary: 'Verify the DNS of a domain now',
  description:
    'Asks the configured resolvers. `verification.message` says what was found, what was expected and what to change; `dns_records` lists every record with what was found. A domain that failed can be verified again at any time. For one that is proven the answer waits, two seconds at most, until the edge serves it.',
  access: 'developer',
  scope: { noun: 'domain', field: 'domain_id' },
  body: VerifyDomain,
  example: { domain_id: 'dom_0123456789abcdefghjk' },
  response: data(Domain),
  async handler({ actor, body, services }) {
    await services.domains.checks.check(body.domain_id, actor)
    if (services.domains.get(body.domain_id).status === 'verified') await services.ingress.settled()
    return { data: services.domains.get(body.domain_id) }
  },
})
