import { Database } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Start a database',
  description: 'Answers at once; it is ready when the status is `running`. One that runs stays as it is.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    return { data: services.databases.start(actor, params.id) }
  },
})
