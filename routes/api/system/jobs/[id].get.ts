import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Job } from '#server/system/schema'

export default endpoint({
  summary: 'Get one background job',
  description: 'The steps of the job with their attempts and times, and why it failed.',
  access: 'viewer',
  params: IdParam,
  response: data(Job),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, services }) => ({ data: services.system.job(actor, params.id) }),
})
