import { Deployment } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Get a deployment with its steps and their times',
  description:
    'While it is under way every read shows the step that runs now; the channel `deployments/:id` of the WebSocket tells each change.',
  access: 'viewer',
  scope: { noun: 'deployment' },
  params: IdParam,
  response: data(Deployment),
  handler: ({ params, services }) => ({ data: services.deployments.get(params.id) }),
})
