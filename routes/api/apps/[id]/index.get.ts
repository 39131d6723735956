import { App } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Get an app',
  description:
    'The whole configuration and state of one app. `needs_redeploy` tells whether something has changed since its live release was made.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(App),
  handler: ({ params, services }) => ({ data: services.apps.get(params.id) }),
})
