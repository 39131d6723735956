import { Backup, BackupQuery } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

/** Backups of the caller's projects, newest first. */
export default endpoint({
  summary: 'List backups',
  description:
    'Of every target in your projects, also of those that were deleted; backups of the platform are shown to administrators.',
  access: 'viewer',
  query: BackupQuery,
  response: list(Backup),
  handler: ({ actor, query, services }) => services.backups.list(actor, query),
})
