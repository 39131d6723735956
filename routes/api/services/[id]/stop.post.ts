import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'Stop a service',
  description:
    'Takes its traffic, then ends its instances; the others run on. The next deployment starts it again.',
  access: 'developer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(Service),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, services }) => ({ data: await services.services.stop(actor, params.id) }),
})
