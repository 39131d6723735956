import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a key that nothing uses. */
export default endpoint({
  summary: 'Delete an SSH key',
  description: 'A key that an app clones with answers 409 with the names of what uses it.',
  access: 'developer',
  scope: { noun: 'ssh_key' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.ssh_keys.remove(actor, params.id)
    return deleted(params.id)
  },
})
