import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Node, NodeChange } from '#server/nodes/schema'

export default endpoint({
  summary: 'Change the labels, role, availability or login of a node',
  description:
    'Labels are free. `drain` moves its work elsewhere, as POST /api/nodes/:id/drain does. `ssh` is how an added server is logged in to: it is tried before it is kept, and what is left out stays; a key of the server that is not the approved one is 409 with that key in `details`, under the path `ssh.host_key`. The server of Portreeve itself stays an active manager, and added ones workers: anything else is refused with 409.',
  access: 'admin',
  params: IdParam,
  body: NodeChange,
  example: { labels: { 'location/rack': '4', disk: 'nvme' } },
  response: data(Node),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.nodes.change(actor, params.id, body),
  }),
})
