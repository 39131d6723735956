import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node } from '#server/nodes/schema'

export default endpoint({
  summary: 'Move the work of a node elsewhere',
  description:
    'Nothing more is placed on it, and each app on it is deployed elsewhere; its deployment says why. 409 while apps are pinned to it, and for the server of Portreeve itself.',
  access: 'admin',
  params: IdParam,
  status: 200,
  response: data(Node),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, services }) => ({ data: await services.nodes.drain(actor, params.id) }),
})
