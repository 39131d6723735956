import { CronJob, CronJobChange } from '#server/cron/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Change, pause or resume a cron job',
  description:
    'Only the fields that are given change; `enabled: false` pauses it. A run that is going on goes on. A job that the repository declares can only be paused here.',
  access: 'developer',
  scope: { noun: 'cron_job' },
  params: IdParam,
  body: CronJobChange,
  example: { enabled: false },
  response: data(CronJob),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({ data: services.cron.change(actor, params.id, body) }),
})
