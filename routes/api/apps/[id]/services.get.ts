import { endpoint } from '#server/endpoint'
import { IdParam, list, pageOf, sortedPaging } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'List the services of a compose app',
  description: 'By name. An app of another source has none. A service is there as soon as its file is known.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['name', 'status'], 'By name.'),
  response: list(Service),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, query, services }) => pageOf(await services.services.list(params.id), query),
})
