import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Service } from '#server/services/schema'

export default endpoint({
  summary: 'Start a stopped service',
  description:
    'Starts its instances, probes them and gives them their traffic; follow the status. 409 unless it is stopped.',
  access: 'developer',
  scope: { noun: 'service' },
  params: IdParam,
  response: data(Service),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, services }) => ({ data: await services.services.start(actor, params.id) }),
})
