import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { ServiceCredentials } from '#server/services/schema'

export default endpoint({
  summary: 'Credentials of a service',
  description:
    'Secret and generated variables of the app that the service uses, as it runs with them. The audit log says who read it. A narrowed API key gets 403.',
  access: 'developer',
  scope: { noun: 'service' },
  effect: 'write',
  params: IdParam,
  response: data(ServiceCredentials),
  errors: [],
  handler: async ({ actor, params, services }) => ({
    data: await services.services.credentials(actor, params.id),
  }),
})
