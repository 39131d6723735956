import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { pagingEntries } from '#server/kernel/schemas'
import { Resource } from '#server/projects/schema'

/** Finds things by name, in what the caller may see. */
export default endpoint({
  summary: 'Search by name',
  description:
    'Apps, databases, domains, redirects by their source, projects and whatever else has a name, best matches first: pages show 500 of them, `total` counts all. Finds nothing that the caller may not see.',
  access: 'self',
  query: v.strictObject({
    ...pagingEntries,
    q: v.pipe(
      v.string(),
      v.trim(),
      v.minLength(1),
      v.maxLength(200),
      v.description('Part of a name; case does not matter.'),
    ),
  }),
  response: list(Resource),
  handler: ({ actor, query, services }) => services.search.find(actor, query.q, query),
})
