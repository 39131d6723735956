import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { MonitoringHealth } from '#server/monitoring/schema'

/** Whether the parts of the platform work. */
export default endpoint({
  summary: 'Get the health of the platform',
  description: 'The same checks as `/readyz`, and free space on the data disk; a part that fails says why.',
  access: 'viewer',
  response: data(MonitoringHealth),
  handler: async ({ services }) => ({
    data: services.monitoring.health(await services.system.readiness()),
  }),
})
