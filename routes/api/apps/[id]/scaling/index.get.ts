import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { AppScaling } from '#server/scaling/schema'

/** What is wanted and what there is; the numbers behind each decision are kept for 90 days. */
export default endpoint({
  summary: 'Show how an app is scaled',
  description:
    'Instances that there should be and that there are, what each may use, the rule, and the newest 50 decisions with the numbers that led to them.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(AppScaling),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, services }) => ({ data: await services.scaling.get(params.id) }),
})
