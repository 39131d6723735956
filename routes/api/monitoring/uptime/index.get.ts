import { endpoint } from '#server/endpoint'
import { UptimeCheckList, UptimeQuery } from '#server/monitoring/uptime/schema'

/** Uptime checks of the caller's projects, newest first. */
export default endpoint({
  summary: 'List uptime checks',
  description: 'With availability of a day, a week and thirty days.',
  access: 'viewer',
  query: UptimeQuery,
  response: UptimeCheckList,
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.monitoring.uptime.list(actor, filter, { page, per_page, sort })
  },
})
