import { endpoint } from '#server/endpoint'
import { IdParam, list, pageOf, sortedPaging } from '#server/http/schemas'
import { Mount } from '#server/volumes/schema'

export default endpoint({
  summary: 'Mounts of an app',
  description:
    'What the next release has, ordered by path. Mounts belong to a release: a rollback brings those of its release back.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['path', 'kind', 'created_at'], 'By path.'),
  response: list(Mount),
  handler: async ({ actor, params, query, services }) =>
    pageOf(await services.volumes.mountsFor(actor, params.id), query),
})
