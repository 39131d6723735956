import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { SlugParam, Template } from '#server/templates/schema'

/** Everything about one template. */
export default endpoint({
  summary: 'Read a template',
  description:
    'Its services, the variables that a deployment may give, what a backup has to copy, and where to read more.',
  access: 'viewer',
  effect: 'read',
  params: SlugParam,
  response: data(Template),
  handler: async ({ params, services }) => ({ data: await services.templates.get(params.slug) }),
})
