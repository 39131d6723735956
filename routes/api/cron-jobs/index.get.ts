import { CronJob, CronJobQuery } from '#server/cron/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

/** Cron jobs of the caller's projects, newest first. */
export default endpoint({
  summary: 'List cron jobs',
  description: 'With when each is due next and how its last run went. Headers of HTTP calls are masked.',
  access: 'viewer',
  query: CronJobQuery,
  response: list(CronJob),
  handler: ({ actor, query, services }) => services.cron.list(actor, query, query),
})
