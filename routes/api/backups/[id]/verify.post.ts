import { Backup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Proves that a backup can be restored. */
export default endpoint({
  summary: 'Verify a backup',
  description:
    'Compares the checksum, restores into a throw-away instance and counts what is in it. Answers at once; `verification` of the backup tells how it goes.',
  access: 'developer',
  scope: { noun: 'backup' },
  params: IdParam,
  response: data(Backup),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, services }) => ({ data: services.backups.verify(actor, params.id) }),
})
