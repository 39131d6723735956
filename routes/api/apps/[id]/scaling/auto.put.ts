import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { AppScaling, RuleRequest } from '#server/scaling/schema'

/** Replaces the rule; what is left out has its default. */
export default endpoint({
  summary: 'Set the auto-scaling rule of an app',
  description:
    'From now on the number of instances follows the metric, looked at every ten seconds: up when two looks in a row ask for more, down when fewer were enough for the whole cool-down. Each decision is kept with its numbers. With `min: 0` the app falls asleep without requests.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: RuleRequest,
  example: { metric: 'cpu', target: 60, min: 1, max: 5 },
  response: data(AppScaling),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  async handler({ actor, params, body, services }) {
    services.scaling.setRule(actor, params.id, body)
    return { data: await services.scaling.get(params.id) }
  },
})
