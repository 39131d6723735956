import { AppAtWork } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Start a stopped app',
  description:
    'Brings the live release back, probes it and gives it the traffic again. Answers at once with the status `starting` and the job that does it; when that fails, `last_error` says why. An image that is gone is built or pulled again first.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(AppAtWork),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, services }) => ({ data: services.apps.start(actor, params.id) }),
})
