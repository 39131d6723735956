import { DeletedWithBackup } from '#server/backups/schema'
import { DeleteDatabaseQuery } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** The row stays, `deleting`, until server and volumes are gone; nothing goes before the final backup is whole. */
export default endpoint({
  summary: 'Delete; takes a final backup unless skip_backup',
  description:
    'The answer says where the final backup is. When it cannot be taken nothing is removed, and the database says why. 409 when there is no destination for it. Linked apps lose their variable with their next deployment.',
  access: 'owner',
  scope: { noun: 'database' },
  params: IdParam,
  query: DeleteDatabaseQuery,
  response: data(DeletedWithBackup),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, query, services }) =>
    services.backups.deleted(params.id, services.databases.delete(actor, params.id, query)),
})
