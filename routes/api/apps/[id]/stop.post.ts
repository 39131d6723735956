import { AppAtWork } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Stop an app and keep its configuration',
  description:
    'Ends the traffic, lets requests in flight finish and removes the containers. The release and its image stay for `start`. Answers at once with the status `stopping` and the job that does it. A start under way is cancelled. A release that is live but still watched is not watched any further; one that has no traffic yet answers 409: wait for it or cancel it.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(AppAtWork),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, services }) => ({ data: services.apps.stop(actor, params.id) }),
})
