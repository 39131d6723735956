import { Backup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list, sortedPaging } from '#server/http/schemas'

/** Backups of one database, newest first. */
export default endpoint({
  summary: 'List the backups of a database',
  description: 'Newest first, with size, checksum and what the last trial restore found.',
  access: 'viewer',
  scope: { noun: 'database' },
  params: IdParam,
  query: sortedPaging(['status', 'size_bytes', 'created_at']),
  response: list(Backup),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, query, services }) =>
    services.backups.list(actor, { ...query, target: 'database', target_id: params.id }),
})
