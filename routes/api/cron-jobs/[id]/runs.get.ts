import { CronRun, CronRunQuery } from '#server/cron/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list } from '#server/http/schemas'

export default endpoint({
  summary: 'Read the run history of a cron job',
  description:
    'Newest first, with exit code, duration and output; times that were skipped or missed are there, too. The newest 100 of 90 days are kept.',
  access: 'viewer',
  scope: { noun: 'cron_job' },
  params: IdParam,
  query: CronRunQuery,
  response: list(CronRun),
  errors: ['NOT_FOUND'],
  handler: ({ params, query, services }) => services.cron.runs(params.id, query),
})
