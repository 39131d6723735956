import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Node, NodeQuery } from '#server/nodes/schema'

export default endpoint({
  summary: 'List nodes with role, state, labels, capacity and use',
  description:
    'The servers that run instances. There is one: the server of Portreeve itself. Capacity and use are read now.',
  access: 'viewer',
  query: NodeQuery,
  response: list(Node),
  handler: ({ query, services }) => services.nodes.list(query),
})
