import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node } from '#server/nodes/schema'

export default endpoint({
  summary: 'Let a node take work again',
  description: 'Nothing changes for one that does.',
  access: 'admin',
  params: IdParam,
  status: 200,
  response: data(Node),
  errors: ['NOT_FOUND'],
  handler: async ({ actor, params, services }) => ({
    data: await services.nodes.change(actor, params.id, { availability: 'active' }),
  }),
})
