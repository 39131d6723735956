import { App, MoveRequest } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Move an app to another project',
  description:
    'The caller must be owner of both projects. A running app gets new instances of the release that is live in the network of the new project, without a build. Links to databases of the old project end with it, since no app reaches a database of another project. 409 while the app is deployed, started or stopped.',
  access: 'owner',
  scope: { noun: 'app' },
  params: IdParam,
  body: MoveRequest,
  example: { project_id: 'prj_0123456789abcdefghjk' },
  response: data(App),
  errors: ['CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.apps.move(actor, params.id, body.project_id),
  }),
})
