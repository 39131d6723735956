import { endpoint } from '#server/endpoint'
import { SharedVariables, VariableReport } from '#server/env/schema'
import { data, IdParam } from '#server/http/schemas'

/** Apps that use a changed one say that they need a deployment. */
export default endpoint({
  summary: 'Replace the variables that a project shares',
  description:
    'What is not named is removed; one that an app stands on is not, which is 409. A variable without `value`, or with the mask, keeps the value that it has, so that a list can be sent back as it was read. References in a circle or to nothing are 422.',
  access: 'developer',
  scope: { noun: 'project' },
  params: IdParam,
  body: SharedVariables,
  example: { variables: [{ key: 'STRIPE_KEY', value: 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', secret: true }] },
  response: data(VariableReport),
  errors: ['CONFLICT', 'PRECONDITION_FAILED'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.env.replaceShared(actor, params.id, body),
  }),
})
