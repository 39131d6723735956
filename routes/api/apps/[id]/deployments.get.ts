import { DeploymentSummary } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list, PagingQuery } from '#server/http/schemas'

export default endpoint({
  summary: 'Deployment history of an app',
  description: 'Newest first. `GET /api/deployments/:id` shows the steps with their times.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: PagingQuery,
  response: list(DeploymentSummary),
  handler: ({ params, query, services }) => services.deployments.history(params.id, query),
})
