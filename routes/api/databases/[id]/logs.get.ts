import * as v from 'valibot'
import { DatabaseLogQuery } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { LogLine } from '#server/runtime-logs/schema'

export default endpoint({
  summary: 'Logs of one database',
  description:
    'What its servers printed, also those that have ended, without passwords: the newest `tail` lines that match, oldest first; `before` and `after` with the `seq` of a line lead to older and newer ones. The channel `databases/:id/logs` of the WebSocket follows; `databases/:id` tells what happens to it.',
  access: 'viewer',
  scope: { noun: 'database' },
  params: IdParam,
  query: DatabaseLogQuery,
  response: data(v.array(LogLine)),
  async handler({ params, query, services }) {
    return { data: await services.runtime_logs.read('database', params.id, query) }
  },
})
