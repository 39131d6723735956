import { DeleteAppQuery } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/**
 * The row stays, `deleting`, until its containers and images are gone, so that a crash leaves something to go
 * on with.
 */
export default endpoint({
  summary: 'Delete an app with its containers and images',
  description:
    'Ends the traffic, cancels deployments under way and removes containers, images, logs and the app itself. Its volumes stay, unless `volumes` asks for those that no other app mounts. Until that is done the app shows as `deleting`.',
  access: 'owner',
  scope: { noun: 'app' },
  params: IdParam,
  query: DeleteAppQuery,
  response: data(Deleted),
  errors: ['ENGINE_UNAVAILABLE'],
  handler({ actor, params, query, services }) {
    services.apps.delete(actor, params.id, query)
    return deleted(params.id)
  },
})
