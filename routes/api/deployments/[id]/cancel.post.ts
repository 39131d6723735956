import { Deployment } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Cancel a queued or running deployment',
  description:
    'Works at every step until the soak is over: what was started is removed, and traffic goes back to the release that served before.',
  access: 'developer',
  scope: { noun: 'deployment' },
  effect: 'deploy',
  params: IdParam,
  response: data(Deployment),
  errors: ['CONFLICT'],
  handler: ({ actor, params, services }) => ({
    data: services.deployments.cancel(actor, params.id),
  }),
})
