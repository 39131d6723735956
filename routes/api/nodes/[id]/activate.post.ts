import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node } from '#server/nodes/schema'

export default endpoint({
  summary: 'Let a node take work again',
  description:
    'Also ends a removal that still moves its work. Nothing changes for one that takes work; what has left it does not come back by itself.',
  access: 'admin',
  params: IdParam,
  status: 200,
  response: data(Node),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, services }) => ({
    data: await services.nodes.activate(actor, params.id),
  }),
})
