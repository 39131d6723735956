import { App } from '#server/apps/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { DeployTemplate, SlugParam } from '#server/templates/schema'

/** Answers once the app, its variables and its first deployment are rows. */
export default endpoint({
  summary: 'Deploy a template',
  description:
    'Makes an app of its compose file. Variables that are not given are generated and become variables of the app, where they can be read. Follow the deployment as that of any app.',
  access: 'developer',
  scope: 'body',
  effect: 'write',
  params: SlugParam,
  body: DeployTemplate,
  example: { name: 'blog', variables: { TIMEZONE: 'Europe/Berlin' } },
  status: 201,
  response: data(App),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE', 'RATE_LIMITED'],
  handler: async ({ actor, project_id, params, body, services }) => ({
    data: await services.templates.deploy(actor, project_id, params.slug, body),
  }),
})
