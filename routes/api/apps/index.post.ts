import { App, NewApp } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Answers once the app and its first deployment are rows; the work goes on as a job. */
export default endpoint({
  summary: 'Create an app and start its first deployment',
  description:
    'Give exactly one source: `git_url`, `image` or `dockerfile`; or `source: "upload"` and send an archive afterwards. Follow the build with `GET /api/apps/:id/logs?type=build` or the channel `deployments/:id` of the WebSocket.',
  access: 'developer',
  scope: 'body',
  effect: 'write',
  body: NewApp,
  example: { name: 'shop', git_url: 'https://git.example.com/team/shop.git', branch: 'main' },
  status: 201,
  response: data(App),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE', 'UNAVAILABLE', 'RATE_LIMITED'],
  async handler({ actor, project_id, body, services }) {
    await services.apps.access.ofNew(actor, project_id, body)
    const names = await services.apps.servicesOf(body)
    return { data: services.apps.create(actor, project_id, body, names) }
  },
})
