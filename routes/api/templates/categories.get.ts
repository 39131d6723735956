import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Category } from '#server/templates/schema'

/** What kinds of templates there are. */
export default endpoint({
  summary: 'List the categories of templates',
  description: 'With the number of templates in each.',
  access: 'viewer',
  effect: 'read',
  response: data(v.array(Category)),
  handler: async ({ services }) => ({ data: await services.templates.categories() }),
})
