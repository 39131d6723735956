import { Deployment, DeployRequest } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Trigger a deployment',
  description:
    'Deploys the configured branch, or another branch or commit for this once. A commit that is built already is not built again unless `no_cache` is set. A newer deployment replaces older ones that are still queued. With an API key it answers 409 while a rollback has no traffic yet.',
  access: 'developer',
  scope: { noun: 'app' },
  effect: 'deploy',
  params: IdParam,
  body: DeployRequest,
  example: { branch: 'main' },
  status: 201,
  response: data(Deployment),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, body, services }) => ({
    data: services.deployments.deploy(actor, params.id, body),
  }),
})
