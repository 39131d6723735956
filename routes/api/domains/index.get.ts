import { Domain, DomainQuery } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

export default endpoint({
  summary: 'List all domains',
  description:
    'Host names of the apps that the caller can see, newest first. Every app has one that was assigned on its creation.',
  access: 'viewer',
  query: DomainQuery,
  response: list(Domain),
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.domains.list(actor, filter, { page, per_page, sort })
  },
})
