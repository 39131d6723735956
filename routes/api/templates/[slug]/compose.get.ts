import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { ComposeText, SlugParam } from '#server/templates/schema'

/** The compose file of a template. */
export default endpoint({
  summary: 'Read the compose file of a template',
  description: 'As it is deployed, without values: `${KEY}` stands for a variable of the template.',
  access: 'viewer',
  effect: 'read',
  params: SlugParam,
  response: data(ComposeText),
  handler: async ({ params, services }) => ({
    data: { compose: await services.templates.compose(params.slug) },
  }),
})
