import { DeploymentQuery, DeploymentSummary } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

export default endpoint({
  summary: 'List deployments',
  description: 'Deployments of all apps that the caller can see, newest first.',
  access: 'viewer',
  query: DeploymentQuery,
  response: list(DeploymentSummary),
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.deployments.list(actor, filter, { page, per_page, sort })
  },
})
