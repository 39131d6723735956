import { Backup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Runs a schedule once, now. */
export default endpoint({
  summary: 'Run a backup schedule now',
  description: 'Makes a backup as the schedule says, retention included; the next run stays where it is.',
  access: 'developer',
  scope: { noun: 'backup_schedule' },
  params: IdParam,
  status: 201,
  response: data(Backup),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, services }) => ({ data: services.backups.schedules.run(actor, params.id) }),
})
