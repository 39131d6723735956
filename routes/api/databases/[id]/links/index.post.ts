import { DatabaseLink, NewLink } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Link to an app: inject its connection string as an environment variable',
  description:
    'The app gets the variable with its next deployment; a variable of its own with the same key counts instead. 409 when the two are linked already, or another database gives the app that key.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  body: NewLink,
  example: { app_id: 'app_0123456789abcdefghjk', key: 'DATABASE_URL' },
  status: 201,
  response: data(DatabaseLink),
  errors: ['CONFLICT'],
  handler({ actor, params, body, services }) {
    return { data: services.databases.links.add(actor, params.id, body) }
  },
})
