import * as v from 'valibot'
import { DatabaseLogLine, DatabaseLogQuery } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Logs of one database',
  description:
    'What its server prints: the newest `tail` lines, oldest first, without passwords. The channel `databases/:id/logs` of the WebSocket follows; `databases/:id` tells what happens to it.',
  access: 'viewer',
  scope: { noun: 'database' },
  params: IdParam,
  query: DatabaseLogQuery,
  response: data(v.array(DatabaseLogLine)),
  errors: ['ENGINE_UNAVAILABLE'],
  async handler({ params, query, services }) {
    return { data: await services.databases.logs.read(params.id, query) }
  },
})
