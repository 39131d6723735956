import { DatabaseEngineFacts } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { list, pageOf, sortedPaging } from '#server/http/schemas'

export default endpoint({
  summary: 'Supported engines and versions',
  description: 'The first version of each engine is the one that a new database gets.',
  access: 'viewer',
  query: sortedPaging(['name', 'label'], 'As they are offered.'),
  response: list(DatabaseEngineFacts),
  handler: ({ query, services }) => pageOf(services.databases.engines(), query),
})
