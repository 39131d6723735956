import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a backup with its archive. */
export default endpoint({
  summary: 'Delete a backup',
  description:
    'The archive and its manifest go from the destination first. 409 while the backup is made, restored or tried.',
  access: 'owner',
  scope: { noun: 'backup' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  async handler({ actor, params, services }) {
    await services.backups.remove(actor, params.id)
    return deleted(params.id)
  },
})
