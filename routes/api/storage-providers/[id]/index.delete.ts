import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Forgets a place for backups that nothing uses. */
export default endpoint({
  summary: 'Remove a backup destination',
  description: '409 while a schedule uses it, backups lie there, or it is the default.',
  access: 'admin',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.storage_providers.remove(actor, params.id)
    return deleted(params.id)
  },
})
