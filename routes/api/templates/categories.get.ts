import { endpoint } from '#server/endpoint'
import { list, pageOf, sortedPaging } from '#server/http/schemas'
import { Category } from '#server/templates/schema'

/** What kinds of templates there are. */
export default endpoint({
  summary: 'List the categories of templates',
  description: 'With the number of templates in each.',
  access: 'viewer',
  effect: 'read',
  query: sortedPaging(['category', 'count'], 'By name.'),
  response: list(Category),
  handler: async ({ query, services }) => pageOf(await services.templates.categories(), query),
})
