import { Domain, DomainChange } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Changes the rules at the edge; the app itself is not touched. */
export default endpoint({
  summary: 'Update path, port, www handling, headers and access rules of a domain',
  description:
    'Only the fields that are given change, and they hold without a restart of anything. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached. Turning a www rule on looks both names up first.',
  access: 'developer',
  scope: { noun: 'domain' },
  params: IdParam,
  body: DomainChange,
  example: { force_https: true, hsts: { max_age: 31_536_000 }, ip_allow: ['192.0.2.0/24'] },
  response: data(Domain),
  errors: ['CONFLICT'],
  async handler({ actor, params, body, services }) {
    const changed = await services.domains.change(actor, params.id, body)
    await services.ingress.settled()
    return { data: changed }
  },
})
