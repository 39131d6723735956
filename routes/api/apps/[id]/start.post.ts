import { App } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Start a stopped app',
  description: 'Brings the live release back, probes it and gives it the traffic again; follow `status`.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(App),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, services }) => ({ data: services.apps.start(actor, params.id) }),
})
