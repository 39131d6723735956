import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { NodeHealth } from '#server/nodes/schema'

export default endpoint({
  summary: 'Health of a node: engine, disk, memory, clock, reachability, last seen',
  description: 'Each check is a sentence; one that cannot be told has `ok: null`.',
  access: 'viewer',
  params: IdParam,
  response: data(NodeHealth),
  errors: ['NOT_FOUND'],
  handler: async ({ params, services }) => ({ data: await services.nodes.health(params.id) }),
})
