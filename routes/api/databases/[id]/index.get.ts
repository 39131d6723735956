import { CredentialsQuery, Database } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Get a database with its connection string',
  description:
    '`connection_string` works inside the network of the project, `external_connection_string` from outside while the database is public. `job` is the work on it that was asked for last. The audit log tells who was shown the password.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  query: CredentialsQuery,
  response: data(Database),
  handler: ({ actor, params, query, services }) => ({
    data: services.databases.read(actor, params.id, query.credentials),
  }),
})
