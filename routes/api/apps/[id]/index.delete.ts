import { DeleteAppQuery } from '#server/apps/schema'
import { DeletedWithBackup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/**
 * The row stays, `deleting`, until its containers and images are gone, so that a crash leaves something to go
 * on with.
 */
export default endpoint({
  summary: 'Delete an app with its containers and images; takes a final backup unless skip_backup',
  description:
    'Ends the traffic, cancels deployments under way and removes containers, images, logs and the app itself. Its volumes stay, unless `volumes` asks for those that no other app mounts. A final backup of its configuration, its variables and, with `volumes`, of these volumes is taken first, unless `skip_backup`; when it fails, nothing is deleted and the app says why. Until all is done the app shows as `deleting`.',
  access: 'owner',
  scope: { noun: 'app' },
  params: IdParam,
  query: DeleteAppQuery,
  response: data(DeletedWithBackup),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, query, services }) =>
    services.backups.deleted(params.id, services.apps.delete(actor, params.id, query)),
})
