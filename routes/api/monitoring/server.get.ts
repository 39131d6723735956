import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { MetricQuery, MetricSeries } from '#server/monitoring/schema'

/** What the server used over time. */
export default endpoint({
  summary: 'Get metrics of the server',
  description: 'Samples of 10 s are kept for 2 h, of 1 min for 48 h, of 1 h for 90 days.',
  access: 'viewer',
  query: MetricQuery,
  response: data(MetricSeries),
  handler: ({ query, services }) => ({ data: services.monitoring.series('server', 'server', query) }),
})
