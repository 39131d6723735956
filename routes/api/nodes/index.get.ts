import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Node, NodeQuery } from '#server/nodes/schema'

export default endpoint({
  summary: 'List nodes with role, state, labels, capacity and use',
  description:
    'The servers that run instances: that of Portreeve itself, and those that were added. Capacity and use of the former are read now; of an added one they are at most a minute old.',
  access: 'viewer',
  query: NodeQuery,
  response: list(Node),
  handler: ({ actor, query, services }) => services.nodes.list(actor, query),
})
