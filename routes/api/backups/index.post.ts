import { Backup, NewBackup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Begins a backup. */
export default endpoint({
  summary: 'Back up a database, a volume, an app or the platform',
  description:
    'Answers at once with the status `queued`; events `backup.progress`, `backup.succeeded` and `backup.failed` tell the rest. The platform is for administrators, and its destination needs a passphrase.',
  access: 'developer',
  body: NewBackup,
  example: { target: 'database', target_id: 'db_5k2m9x7q1w3e8r6t4y0z' },
  status: 201,
  response: data(Backup),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.backups.create(actor, body) }),
})
