import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { AlertRule, NewAlertRule } from '#server/monitoring/alerts/schema'

/** Makes a rule that watches a metric. */
export default endpoint({
  summary: 'Create an alert rule',
  description:
    'Evaluated every ten seconds. Webhooks that ask for `alert.*` are told, or only those in `channels`; what happens at once is one message per project.',
  access: 'developer',
  scope: 'body',
  body: NewAlertRule,
  example: { name: 'Slow answers', metric: 'latency_p95_ms', threshold: 500, for_s: 120 },
  status: 201,
  response: data(AlertRule),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, project_id, body, services }) => ({
    data: services.monitoring.alerts.add(actor, project_id, body),
  }),
})
