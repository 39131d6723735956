import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Remove the auto-scaling rule of an app',
  description: 'The instances that there are stay, until somebody scales the app.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    services.scaling.removeRule(actor, params.id)
    return deleted(params.id)
  },
})
