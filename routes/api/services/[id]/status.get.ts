import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { ServiceStatus } from '#server/services/schema'

export default endpoint({
  summary: 'State, health and instances of a service',
  description: 'Runs the health check of the compose file, at most once in five seconds.',
  access: 'viewer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(ServiceStatus),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, services }) => ({ data: await services.services.status(params.id) }),
})
