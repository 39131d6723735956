import { Database, NewDatabase } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** The answer comes at once; the server is made by a job, and answers when the status is `running`. */
export default endpoint({
  summary: 'Create a database: engine, version, size limits',
  description:
    'Credentials are generated. Apps of the same project reach it under `host`; link it to an app to give it the connection string as a variable. Answers with status `creating`; it is ready when that is `running`. 409 when the project has a database of that name, its quota is used up, or the port belongs to another one.',
  access: 'developer',
  scope: 'body',
  body: NewDatabase,
  example: { name: 'shop-db', engine: 'postgres', version: '17' },
  status: 201,
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, project_id, body, services }) {
    return { data: services.databases.create(actor, project_id, body) }
  },
})
