import { endpoint } from '#server/endpoint'
import { NewVariable, Variable } from '#server/env/schema'
import { data, IdParam } from '#server/http/schemas'

/** Takes part in the next deployment; what runs keeps the environment that it was started with. */
export default endpoint({
  summary: 'Add a variable to an app',
  description:
    'The next deployment takes it in; until then the app says that it needs one. A reference to a shared variable or database that does not exist, or that leads in a circle, is refused with 422, a second variable of the same key with 409.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: NewVariable,
  example: {
    key: 'STRIPE_KEY',
    value: 'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
    secret: true,
    scopes: ['runtime'],
  },
  status: 201,
  response: data(Variable),
  errors: ['CONFLICT'],
  handler: ({ actor, params, body, services }) => ({ data: services.env.add(actor, params.id, body) }),
})
