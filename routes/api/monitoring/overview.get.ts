import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { MonitoringOverview } from '#server/monitoring/schema'

/** What needs a look now, of the projects that the caller can see. */
export default endpoint({
  summary: 'Get the monitoring overview',
  description: 'Apps by status, those that use most, the newest sample of the server, and firing alerts.',
  access: 'viewer',
  response: data(MonitoringOverview),
  handler: ({ actor, services }) => ({ data: services.monitoring.overview(actor) }),
})
