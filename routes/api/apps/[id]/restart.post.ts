import { Deployment } from '#server/deployments/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** A restart is a deployment of the release that is live: new instances are probed before the old ones go. */
export default endpoint({
  summary: 'Restart an app without downtime',
  description:
    'Starts new instances of the live release beside the old ones, switches the traffic once they are ready, and ends the old ones. Answers with the deployment that does it. 409 while a rollback has no traffic yet: it brings new instances itself.',
  access: 'developer',
  scope: { noun: 'app' },
  effect: 'deploy',
  params: IdParam,
  response: data(Deployment),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler({ actor, params, services }) {
    return { data: services.deployments.view(services.deployments.restart(actor, params.id)) }
  },
})
