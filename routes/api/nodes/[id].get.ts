import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node } from '#server/nodes/schema'

export default endpoint({
  summary: 'Get a node',
  description: 'What the server has, what of it is in use, and whether its engine answers; read now.',
  access: 'viewer',
  params: IdParam,
  response: data(Node),
  errors: ['NOT_FOUND'],
  handler: async ({ actor, params, services }) => ({ data: await services.nodes.get(actor, params.id) }),
})
