import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Delete a cron job with the history of its runs',
  description: 'A run that is going on is ended. A job that the repository declares cannot be deleted here.',
  access: 'developer',
  scope: { noun: 'cron_job' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.cron.remove(actor, params.id)
    return deleted(params.id)
  },
})
