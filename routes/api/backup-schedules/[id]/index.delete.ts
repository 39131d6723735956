import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Ends a schedule; its backups stay. */
export default endpoint({
  summary: 'Delete a backup schedule',
  description: 'The backups that it made stay, and nothing deletes them any more but you.',
  access: 'developer',
  scope: { noun: 'backup_schedule' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler({ actor, params, services }) {
    services.backups.schedules.remove(actor, params.id)
    return deleted(params.id)
  },
})
