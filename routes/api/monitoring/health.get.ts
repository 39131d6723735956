import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { MonitoringHealth } from '#server/monitoring/schema'

/** Whether the parts of the platform work. */
export default endpoint({
  summary: 'Get the health of the platform',
  description:
    'The same checks as `/readyz`, and background jobs, free space on the data disk and nodes; a part that fails says why.',
  access: 'viewer',
  response: data(MonitoringHealth),
  async handler({ services }) {
    const { checks } = await services.system.readiness()
    const [jobs, nodes] = [services.system.checkJobs(), services.nodes.check()]
    return { data: services.monitoring.health({ checks: { ...checks, jobs, nodes } }) }
  },
})
