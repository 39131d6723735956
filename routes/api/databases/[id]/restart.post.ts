import { Database } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Restart a database',
  description: 'The server ends and starts again on the same data; connections break for some seconds.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    return { data: services.databases.restart(actor, params.id) }
  },
})
