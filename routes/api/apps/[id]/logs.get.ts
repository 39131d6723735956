import { LogLine, LogQuery } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import * as v from 'valibot'

export default endpoint({
  summary: 'Read logs of an app',
  description:
    '`type=runtime` (default): what the instances print. `type=build`: the log of the latest deployment. `type=access`: requests at the edge. Newest `tail` lines, oldest first. The channels `apps/:id/logs` and `apps/:id/logs/access` of the WebSocket follow.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: LogQuery,
  response: data(v.array(LogLine)),
  errors: ['ENGINE_UNAVAILABLE'],
  async handler({ params, query, services }) {
    if (query.type === 'runtime') return { data: await services.deployments.runtime.logs(params.id, query) }
    return {
      data:
        query.type === 'build'
          ? services.deployments.runtime.buildLogs(params.id, query)
          : services.traffic.lines(params.id, query),
    }
  },
})
