import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node } from '#server/nodes/schema'

export default endpoint({
  summary: 'Move the work of a node elsewhere',
  description: 'The work of the only server cannot be moved: 409.',
  access: 'admin',
  params: IdParam,
  status: 200,
  response: data(Node),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ params, services }) => services.nodes.drain(params.id),
})
