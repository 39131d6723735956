import { endpoint } from '#server/endpoint'
import { IdParam, list, sortedPaging } from '#server/http/schemas'
import { NodeInstance } from '#server/nodes/schema'

export default endpoint({
  summary: 'What runs on a node',
  description: 'Containers of the projects that the caller sees, oldest first, stopped ones too.',
  access: 'viewer',
  params: IdParam,
  query: sortedPaging(['process', 'state', 'memory_bytes', 'started_at'], 'Oldest first.'),
  response: list(NodeInstance),
  errors: ['NOT_FOUND', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, query, services }) => services.nodes.instances(actor, params.id, query),
})
