import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'Get a service of a compose app',
  description: 'A service is found by its id as long as the file of its app has it.',
  access: 'viewer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(Service),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, services }) => ({ data: await services.services.get(params.id) }),
})
