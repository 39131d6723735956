import { Database } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Old and new credentials are both valid until every linked app runs with the new ones. */
export default endpoint({
  summary: 'Rotate the password and update linked apps',
  description:
    'New credentials become valid beside the old ones, linked apps are started anew with them without downtime, then the old ones end, together with the sessions of their login; apps of MySQL, MariaDB, Redis and Valkey connect once more. When an app does not come up, both stay valid and the database says which app; rotate again to go on from there. Programs outside of Portreeve must be given the new connection string.',
  access: 'owner',
  scope: { noun: 'database' },
  params: IdParam,
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    return { data: services.databases.rotate(actor, params.id) }
  },
})
