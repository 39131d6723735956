import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'List the services of a compose app',
  description: 'By name. An app of another source has none. A service is there as soon as its file is known.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(v.array(Service)),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, services }) => ({ data: await services.services.list(params.id) }),
})
