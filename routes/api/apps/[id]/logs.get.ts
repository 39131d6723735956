import { LogQuery } from '#server/apps/instances-schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { LogLine } from '#server/runtime-logs/schema'
import * as v from 'valibot'

export default endpoint({
  summary: 'Read logs of an app',
  description:
    '`type=runtime` (default): what its instances printed, also those that have ended, within the bounds of the settings. `type=build`: the log of the latest deployment. `type=access`: requests at the edge. The newest `tail` lines that match, oldest first; `before` and `after` with the `seq` of a line lead to older and newer ones of what instances printed. The channels `apps/:id/logs` and `apps/:id/logs/access` of the WebSocket follow, from the `seq` of a line on.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: LogQuery,
  response: data(v.array(LogLine)),
  async handler({ params, query, services }) {
    const { type, ...wanted } = query
    if (type === 'runtime') return { data: await services.runtime_logs.read('app', params.id, wanted) }
    return {
      data:
        type === 'build'
          ? await services.deployments.runtime.buildLogs(params.id, query)
          : await services.traffic.lines(params.id, query),
    }
  },
})
