import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { AlertRule, AlertRuleChange } from '#server/monitoring/alerts/schema'

/** Changes, silences or turns off a rule. */
export default endpoint({
  summary: 'Change an alert rule',
  description:
    'Rules of the installation, the built-in ones among them, are changed by administrators; rules of a project by its developers.',
  access: 'developer',
  params: IdParam,
  body: AlertRuleChange,
  example: { silenced_until: '2026-01-31T18:00:00.000Z' },
  response: data(AlertRule),
  errors: ['NOT_FOUND', 'CONFLICT', 'FORBIDDEN'],
  handler: ({ actor, params, body, services }) => ({
    data: services.monitoring.alerts.change(actor, params.id, body),
  }),
})
