import { Deployment, RollbackRequest } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/**
 * Starts a new deployment of an earlier release. Nothing is rebuilt, so a rollback works even when the
 * repository is gone.
 */
export default endpoint({
  summary: 'Roll an app back to an earlier deployment',
  description:
    'Brings back the image, configuration and environment of that deployment, probed like any other. Default: the one before the live one. Turns `auto_deploy` off when it goes live, so that the next push does not undo it, and on again when it does not last. Until it is live it gives way to a deployment or rollback that a user asks for; restarts and deployments by pushes, hooks and API keys answer 409.',
  access: 'developer',
  scope: { noun: 'app' },
  effect: 'deploy',
  params: IdParam,
  body: RollbackRequest,
  example: { deployment_id: 'dep_0123456789abcdefghjk' },
  status: 201,
  response: data(Deployment),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.deployments.rollback(actor, params.id, body.deployment_id),
  }),
})
