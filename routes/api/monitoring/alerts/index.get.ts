import { endpoint } from '#server/endpoint'
import { AlertQuery, AlertRuleList } from '#server/monitoring/alerts/schema'

/** Rules with their state, built-in ones first. */
export default endpoint({
  summary: 'List alert rules',
  description: 'Rules of your projects and of the installation, each with what it found bad.',
  access: 'viewer',
  query: AlertQuery,
  response: AlertRuleList,
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.monitoring.alerts.list(actor, filter, { page, per_page, sort })
  },
})
