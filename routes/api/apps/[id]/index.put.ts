import { App, AppChange } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** What runs stays as it is until the next deployment; of the edge only the automatic name follows. */
export default endpoint({
  summary: 'Update the configuration of an app',
  description:
    'Only the fields that are given change. The live release stays as it is; deploy to use the new configuration. A new name moves the automatic domain: the answer comes once the edge obeys, after two seconds at most.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: AppChange,
  example: { port: 8080, health_check: { path: '/health' } },
  response: data(App),
  errors: ['CONFLICT', 'UNAVAILABLE', 'RATE_LIMITED'],
  async handler({ actor, params, body, services }) {
    await services.apps.access.ofChange(actor, params.id, body)
    await services.apps.servicesOf(body)
    const updated = services.apps.update(actor, params.id, body)
    if (body.name !== undefined) await services.ingress.settled()
    return { data: updated }
  },
})
