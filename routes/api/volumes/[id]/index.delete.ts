import { DeletedWithBackup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { DeleteVolumeQuery } from '#server/volumes/schema'

/** The row stays, `deleting`, until the data is gone, so that a crash leaves something to go on with. */
export default endpoint({
  summary: 'Delete a volume with everything in it',
  description:
    'Answers 409 while an app mounts it, and while an instance of an earlier release still holds it. A final backup is taken first, unless `skip_backup`, or nothing ever wrote to it; until that is done the volume shows as `deleting`, and when it fails nothing is deleted.',
  access: 'owner',
  scope: { noun: 'volume' },
  params: IdParam,
  query: DeleteVolumeQuery,
  response: data(DeletedWithBackup),
  errors: ['NOT_FOUND', 'CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, query, services }) =>
    services.backups.deleted(params.id, await services.volumes.remove(actor, params.id, query)),
})
