import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { AlertHistory } from '#server/monitoring/alerts/schema'

/** Alerts that fired, newest first. */
export default endpoint({
  summary: 'List fired alerts',
  description: 'Kept for 90 days, with when each was resolved.',
  access: 'viewer',
  query: sortedPaging(['severity', 'fired_at', 'resolved_at']),
  response: list(AlertHistory),
  handler: ({ actor, query, services }) => services.monitoring.alerts.history(actor, query),
})
