import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted } from '#server/http/schemas'

export default endpoint({
  summary: 'Unlink',
  description: 'The app keeps the variable until its next deployment.',
  access: 'developer',
  scope: { noun: 'database' },
  params: v.object({
    id: v.pipe(v.string(), v.description('Identifier of the database.')),
    app_id: v.pipe(v.string(), v.description('Identifier of the app.')),
  }),
  response: data(Deleted),
  handler({ actor, params, services }) {
    services.databases.links.remove(actor, params.id, params.app_id)
    return deleted(params.app_id)
  },
})
