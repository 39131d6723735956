import { ComparisonQuery, DeploymentComparison } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'What differs between two deployments of an app',
  description:
    'Source, image, plan, configuration, mounts and variables that are not the same, old and new; values of secrets are masked. Without `with`: against the last deployment before it that went live with a build of its own. 404 when there is no such deployment of the app.',
  access: 'viewer',
  scope: { noun: 'deployment' },
  params: IdParam,
  query: ComparisonQuery,
  response: data(DeploymentComparison),
  handler: ({ params, query, services }) => ({ data: services.deployments.compare(params.id, query.with) }),
})
