import { Backup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** One backup with its size, checksum and location. */
export default endpoint({
  summary: 'Get a backup',
  description: 'With its size, checksum, location, and what the last trial restore found.',
  access: 'viewer',
  scope: { noun: 'backup' },
  params: IdParam,
  response: data(Backup),
  errors: ['NOT_FOUND'],
  handler: ({ params, services }) => ({ data: services.backups.get(params.id) }),
})
