import { DatabaseList, DatabaseQuery } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'

export default endpoint({
  summary: 'List databases',
  description: 'Newest first, without addresses and passwords: those are shown by `GET /api/databases/:id`.',
  access: 'viewer',
  query: DatabaseQuery,
  response: DatabaseList,
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.databases.list(actor, filter, { page, per_page, sort })
  },
})
