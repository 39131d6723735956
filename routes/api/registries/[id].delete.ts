import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Removes the login of a registry that nothing uses. */
export default endpoint({
  summary: 'Remove an image registry',
  description: 'Forgets the address and its login. Images that were pulled stay on the server.',
  access: 'admin',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.registries.remove(actor, params.id)
    return deleted(params.id)
  },
})
