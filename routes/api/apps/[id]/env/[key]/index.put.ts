import { endpoint } from '#server/endpoint'
import { AppVariableParams, Variable, VariableChange } from '#server/env/schema'
import { data } from '#server/http/schemas'

export default endpoint({
  summary: 'Change one variable of an app',
  description:
    'Only the fields that are given change. The next deployment takes the change in. The history of the variable says who made it.',
  access: 'developer',
  scope: { noun: 'app' },
  params: AppVariableParams,
  body: VariableChange,
  example: { value: '${{ project.STRIPE_KEY }}', comment: 'The account of the shop' },
  response: data(Variable),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.env.change(actor, params.id, params.key, body),
  }),
})
