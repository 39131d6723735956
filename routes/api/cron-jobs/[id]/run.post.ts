import { CronRun } from '#server/cron/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** A run by hand moves none of the times that the job is due. */
export default endpoint({
  summary: 'Run a cron job now',
  description:
    'Answers at once with the run; `GET /api/cron-jobs/:id/runs` tells how it goes. While another run is going on the job decides by `overlap`: `forbid` answers 409. A paused job can be run, too.',
  access: 'developer',
  scope: { noun: 'cron_job' },
  params: IdParam,
  status: 201,
  response: data(CronRun),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, services }) => ({ data: services.cron.runNow(actor, params.id) }),
})
