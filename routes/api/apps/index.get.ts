import { AppQuery, AppSummary } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

export default endpoint({
  summary: 'List apps',
  description:
    'Apps of the projects that the caller can see, newest first. `GET /api/apps/:id` shows the rest of the fields.',
  access: 'viewer',
  query: AppQuery,
  response: list(AppSummary),
  handler: ({ actor, query, services }) => services.apps.list(actor, query, query),
})
