import { Backup, DatabaseBackup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Begins a backup of one database. */
export default endpoint({
  summary: 'Back up a database',
  description:
    'A consistent copy, while clients go on writing. Answers at once with the status `queued`; events `backup.progress`, `backup.succeeded` and `backup.failed` tell the rest.',
  access: 'developer',
  scope: { noun: 'database' },
  params: IdParam,
  body: DatabaseBackup,
  example: { encrypted: true },
  status: 201,
  response: data(Backup),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.backups.create(actor, {
      ...body,
      target: 'database',
      target_id: params.id,
      pause_app: false,
    }),
  }),
})
