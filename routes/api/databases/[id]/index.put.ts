import { Database, DatabaseChange } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** What changes the server itself restarts it; a later release line is copied into a new volume first. */
export default endpoint({
  summary: 'Update limits, version, public access',
  description:
    'Only the fields that are given change. Limits, the port and a version of the same release line take hold by a restart of some seconds. A later line is an upgrade: nobody can write while the data is copied into a new volume and counted; when anything differs, the old version goes on. The old volume is kept until `previous_volume` removes it or goes back to it. An older version is refused with 422.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  body: DatabaseChange,
  example: { limits: { memory_bytes: 1_073_741_824 }, public: true },
  response: data(Database),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, body, services }) {
    return { data: services.databases.change(actor, params.id, body) }
  },
})
