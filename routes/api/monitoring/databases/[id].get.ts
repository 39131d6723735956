import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { MetricQuery, MetricSeries } from '#server/monitoring/schema'

/** What a database used over time. */
export default endpoint({
  summary: 'Get metrics of a database',
  description:
    'Samples of 10 s are kept for 2 h, of 1 min for 48 h, of 1 h for 90 days. Without a sample the list of points is empty.',
  access: 'viewer',
  scope: { noun: 'database' },
  params: IdParam,
  query: MetricQuery,
  response: data(MetricSeries),
  errors: ['NOT_FOUND'],
  handler: ({ params, query, services }) => ({
    data: services.monitoring.series('database', params.id, query),
  }),
})
