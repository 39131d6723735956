import { AppDeploymentQuery, DeploymentSummary } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list } from '#server/http/schemas'

export default endpoint({
  summary: 'Deployment history of an app',
  description: 'Newest first. `GET /api/deployments/:id` shows the steps with their times.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: AppDeploymentQuery,
  response: list(DeploymentSummary),
  handler: ({ actor, params, query: { page, per_page, sort, ...filter }, services }) =>
    services.deployments.list(actor, { ...filter, app_id: [params.id] }, { page, per_page, sort }),
})
