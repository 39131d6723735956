import { AppEvent } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list, paged, PagingQuery } from '#server/http/schemas'

export default endpoint({
  summary: 'Timeline of an app',
  description: 'Deployments, restarts, crashes, OOM kills and configuration changes, newest first.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: PagingQuery,
  response: list(AppEvent),
  handler({ params, query, services }) {
    const { rows, total } = services.events.page(
      { app_id: params.id },
      query.per_page,
      (query.page - 1) * query.per_page,
    )
    return paged({ total, rows: rows.map((event) => ({ ...event, id: event.seq })) }, query)
  },
})
