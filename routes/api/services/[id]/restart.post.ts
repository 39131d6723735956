import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'Restart a service',
  description: 'A deployment that makes only this service anew, beside the old one where it has no volume.',
  access: 'developer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(Service),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, services }) => ({
    data: await services.services.restart(actor, params.id),
  }),
})
