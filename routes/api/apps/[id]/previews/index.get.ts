import { endpoint } from '#server/endpoint'
import { IdParam, list } from '#server/http/schemas'
import { sortedPaging } from '#server/kernel/schemas'
import { Preview } from '#server/previews/schema'

/** Previews of an app, newest first. */
export default endpoint({
  summary: 'List preview environments of an app',
  description:
    'With where each answers, what it shows and what waits for an approval. `preview_app_id` is an app for logs, deployments and instances; it is in no list of apps.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['number', 'status', 'created_at', 'updated_at']),
  response: list(Preview),
  handler: ({ params, query, services }) => services.previews.list(params.id, query),
})
