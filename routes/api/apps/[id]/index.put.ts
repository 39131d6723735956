import { App, AppChange } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Changes rows only: what runs stays as it is until the next deployment. */
export default endpoint({
  summary: 'Update the configuration of an app',
  description: 'Only the fields that are given change. The live release stays as it is; deploy to use the new configuration. A new name moves the automatic domain at once.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: AppChange,
  example: { port: 8080, health_check: { path: '/health' } },
  response: data(App),
  errors: ['CONFLICT'],
  handler: ({ actor, params, body, services }) => ({ data: services.apps.update(actor, params.id, body) }),
})
