import { endpoint } from '#server/endpoint'
import { data, Deleted, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Drain and remove a node',
  description: 'The server of Portreeve itself cannot be removed: 409.',
  access: 'admin',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ params, services }) => services.nodes.remove(params.id),
})
