import { endpoint } from '#server/endpoint'
import { AppVariableParams } from '#server/env/schema'
import { data, Deleted, deleted } from '#server/http/schemas'

export default endpoint({
  summary: 'Delete one variable of an app',
  description:
    'The next deployment goes without it. Releases that were made with it keep it, so a rollback brings it back for what it runs.',
  access: 'developer',
  scope: { noun: 'app' },
  params: AppVariableParams,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, services }) => deleted(services.env.remove(actor, params.id, params.key)),
})
