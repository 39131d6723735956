import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { ServiceUrl } from '#server/services/schema'

export default endpoint({
  summary: 'Address of a service',
  description: 'The public address, and the name by which other services of the app reach it.',
  access: 'viewer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(ServiceUrl),
  errors: [],
  handler: async ({ params, services }) => ({ data: await services.services.url(params.id) }),
})
