import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { UptimeCheckHistory, UptimeHistoryQuery } from '#server/monitoring/uptime/schema'

/** One check with what it saw. */
export default endpoint({
  summary: 'Get an uptime check with its results',
  description: 'Results are added up: in five minutes for the last week, per day for 400 days.',
  access: 'viewer',
  scope: { noun: 'uptime_check' },
  params: IdParam,
  query: UptimeHistoryQuery,
  response: data(UptimeCheckHistory),
  errors: ['NOT_FOUND'],
  handler: ({ params, query, services }) => ({
    data: services.monitoring.uptime.get(params.id, query.days),
  }),
})
