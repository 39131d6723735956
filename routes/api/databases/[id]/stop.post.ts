import { Database } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Stop a database',
  description:
    'Connections end after the server has written what it holds, within 60 seconds. The data stays; apps cannot connect until it is started.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    return { data: services.databases.stop(actor, params.id) }
  },
})
