import { endpoint } from '#server/endpoint'
import { data, Deleted, IdParam } from '#server/http/schemas'
import { RemoveNodeQuery } from '#server/nodes/schema'

/** The row stays, `removing`, until its work is elsewhere and it has left the cluster. */
export default endpoint({
  summary: 'Drain and remove a node',
  description:
    'Its apps are deployed elsewhere first, each without losing a request. 409 while apps are pinned to it, and for one that does not answer, unless `force` is set. The server of Portreeve itself cannot be removed: 409.',
  access: 'admin',
  params: IdParam,
  query: RemoveNodeQuery,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, query, services }) =>
    services.nodes.remove(actor, params.id, query.force ?? false),
})
