import { Domain } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Get a domain with the DNS records to set',
  description: 'Also what the last look-up found and when the next one is.',
  access: 'viewer',
  scope: { noun: 'domain' },
  params: IdParam,
  response: data(Domain),
  handler: ({ params, services }) => ({ data: services.domains.get(params.id) }),
})
