import { DeploymentLogQuery } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { LogLine } from '#server/runtime-logs/schema'
import * as v from 'valibot'

export default endpoint({
  summary: 'Build and release log of a deployment',
  description:
    'Every line with its step. Poll with `after` set to the last `seq`, or subscribe to `deployments/:id` on the WebSocket.',
  access: 'viewer',
  scope: { noun: 'deployment' },
  params: IdParam,
  query: DeploymentLogQuery,
  response: data(v.array(LogLine)),
  handler: async ({ params, query, services }) => ({
    data: await services.deployments.log(params.id, query),
  }),
})
