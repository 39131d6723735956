import { AppEvent } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, limits, list, paged, sortedPaging } from '#server/http/schemas'

export default endpoint({
  summary: 'Timeline of an app',
  description: 'Deployments, restarts, crashes, OOM kills and configuration changes, newest first.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['created_at'], 'Newest first.', { created_at: 'seq' }),
  response: list(AppEvent),
  handler({ params, query, services }) {
    const { rows, total } = services.events.page({ app_id: params.id }, ...limits(query))
    return paged({ total, rows: rows.map((event) => ({ ...event, id: event.seq })) }, query)
  },
})
